"""Evergrow inside the programs people already use, one module per program.

``river`` makes an Evergrow classifier one of river, which learns one example at a time, and a
classifier of river one of scikit-learn. Each module imports its program, so import the module, not
this package. Start reading with ``river``.
"""

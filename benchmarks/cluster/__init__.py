"""What training past one machine must show: the same model, within its memory, whatever fails.

``python -m benchmarks cluster --only NAME`` measures one part.
"""

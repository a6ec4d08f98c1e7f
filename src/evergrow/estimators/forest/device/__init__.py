"""Prediction of forests on a GPU through torch.

All trees lie on the device as flat arrays (``flat_forest``). A block of rows is transformed as the
core does it, descends all trees at the same time (``descent``; ``kernels`` does
the same in Triton, where that is installed) and collects the votes of its leaves (``votes``).
``device_forest`` holds it all for one forest on one device.
"""

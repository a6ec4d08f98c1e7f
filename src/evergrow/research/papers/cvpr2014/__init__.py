"""Ristin et al., CVPR 2014: NCM forests that learn new classes incrementally."""

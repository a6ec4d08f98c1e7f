"""Ristin et al., CVPR 2015: coarse and fine classes, of which only some samples tell the fine."""

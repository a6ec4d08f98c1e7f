"""Ristin et al., CVPR 2015: subcategories, when only some samples have fine labels."""

"""Experiments of Ristin et al. 2014: forests of class means that grow."""

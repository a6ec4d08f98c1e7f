"""Moosmann et al., NIPS 2006: visual words from extremely randomised clustering forests."""

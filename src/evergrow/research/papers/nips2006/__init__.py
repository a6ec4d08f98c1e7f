"""Moosmann, Triggs and Jurie 2006: visual words from randomised clustering forests."""

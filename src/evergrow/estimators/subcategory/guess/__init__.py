"""Guessing missing fine classes: one file for each guesser, and a report on their accuracy."""

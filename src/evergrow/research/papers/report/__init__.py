"""Guo et al.'s report: SVM and NCM forests that take new classes, on spirals and on pictures."""

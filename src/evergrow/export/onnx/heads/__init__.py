"""From vectors to scores and probabilities of classes, one module per family of estimators."""

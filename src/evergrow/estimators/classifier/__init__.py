"""What all classifiers share.

``learner`` checks the input and swaps the fitted value, ``predictor`` turns scores into labels,
``persistence`` is the one ``save`` of all estimators, ``documentation`` their link to the docs.
"""

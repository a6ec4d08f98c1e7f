"""The experiments of five papers, and of our own guide, as data.

``table`` has rows of measurements, ``claims`` the claims and the rule that judges them, ``figures``
the panels of figures, ``frame`` runs an experiment, ``page`` writes its page. Each paper has a
module with its experiments (``cvpr2014``, ``report``, ``icra2017``, ``nips2006``, ``cvpr2015``, and
``guide`` for measurements of our own) and a file in ``notes/`` with notes and reasons.
``scenes`` draws images for ``nips2006``.
"""

"""Which learner when: our own measurements, which are in no paper."""

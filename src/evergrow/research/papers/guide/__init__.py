"""Which learner when: measurements behind our advice, which are in no paper."""

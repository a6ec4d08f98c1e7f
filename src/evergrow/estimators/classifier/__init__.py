"""What all classifiers share: checks of their input, labels, and scores."""

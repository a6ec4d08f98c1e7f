"""What a forest has learnt: an immutable value, its parts, and its arrays in a model file."""

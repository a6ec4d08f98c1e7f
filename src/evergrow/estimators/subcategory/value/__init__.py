"""What a forest of coarse and fine classes has learnt, and its arrays in a model file."""

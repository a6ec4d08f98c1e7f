"""Work on the workers of a cluster."""

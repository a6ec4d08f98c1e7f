"""Features in a folder of files that together are one matrix."""

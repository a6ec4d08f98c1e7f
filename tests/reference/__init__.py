"""NumPy twins of the core's algorithms, written to be read beside the papers."""

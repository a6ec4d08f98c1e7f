"""NumPy twins of the core's algorithms, written to be read with the papers."""

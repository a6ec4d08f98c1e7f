"""Where training samples are stored: memory, a memory-mapped file, or a temporary file."""

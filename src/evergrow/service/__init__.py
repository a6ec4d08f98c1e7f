"""A workspace over HTTP, and a page to teach it."""

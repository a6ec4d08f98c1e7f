"""The experiments of the papers, one module per table or figure."""

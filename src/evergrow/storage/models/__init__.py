"""Model files: ``format`` (bytes), ``codec`` (fields), ``loader`` and ``pipelines`` (models)."""

"""Model files: ``format`` (bytes), ``header`` (fields), ``loader`` and ``pipelines`` (models)."""

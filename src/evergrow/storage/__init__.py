"""Files on disk: model files, pipelines in them, shards of features, the cache folder.

``files`` is the format of model files, arrays and JSON with a checksum and never pickle.
``modelfile`` checks what an estimator reads from one. ``loading`` finds the estimator of a file by
name, in a table of strings, because estimators lie above this room. ``pipelines`` adds the steps of
scikit-learn that can be saved. ``shards`` is a folder of files that together are one matrix: its
manifest, reading, appending, and importers for NumPy and Parquet files.

Arrays and headers pass through here. Start reading with ``files.write_model``, or with
``shards.reading`` for features that do not fit in memory.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)

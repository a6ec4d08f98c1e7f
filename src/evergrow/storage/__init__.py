"""Files on disk: model files, pipelines in them, shards of features, the cache folder.

``models`` is model files: arrays and JSON with a checksum and never pickle (``format``), what the
headers of all estimators share (``header``), the steps of scikit-learn that can be saved
(``sklearn_steps``, ``pipelines``), and ``loader``, which imports the rooms of the estimators by
name at run time, because they lie above this one. ``shards`` is a folder of files that together are
one matrix: its manifest, reading, appending, and importers of NumPy and Parquet files.
``device_rows`` gives rows on a GPU the same interface.
``cache_folder`` says where data that can be computed again are stored. ``npy`` reads and writes
headers of ``.npy`` files, and ``pickles`` reads plain values from a pickle without executing it.

Arrays and headers pass through here. Start reading with ``models.format.write_model``, or with
``shards.reader`` for features that do not fit in memory.
"""

from evergrow.foundation.public_names import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)

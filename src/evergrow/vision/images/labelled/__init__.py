"""Images with their classes, from every format that has them, and back.

``finder`` recognises the format of a source and calls its reader: ``class_folders``, ``table`` for
CSV files, ``coco`` for COCO annotations, ``webdataset`` for tar files, which ``tar_file`` lists.
All readers return ``LabelledImages``; files that tables and annotations name are found by
``named_files``, which keeps them in their folder. ``coco_writer`` and ``sorted_folders`` write
annotations and class folders.
"""

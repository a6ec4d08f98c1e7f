"""Images from files, bytes and arrays as upright 8-bit RGB.

``sources`` reads the content of a source within limits, ``decoder`` turns it into pixels, and
``reader`` joins both for one image or many. ``folders`` lists the images of folders, ``labelled``
those of folders, tables, annotations and tar files with their classes; ``zip_files`` unpacks
folders, and ``label_table`` has the classes next to them. ``video`` yields the frames of videos and
cameras. ``parts`` cuts many images into the parts of a job.
"""

from evergrow.foundation.public_names import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)

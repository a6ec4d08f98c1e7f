"""Images from files, bytes and arrays as upright 8-bit RGB.

``sources`` reads the content of a source within limits, ``decoder`` turns it into pixels, and
``reader`` joins both for one image or many. ``folders`` lists the images of folders, by the names
of the folders or a ``label_table`` next to them; ``zip_files`` unpacks folders. ``parts`` cuts many
images into the parts of a job.
"""

from evergrow.foundation.public_names import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)

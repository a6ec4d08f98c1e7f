"""python classify.py model.onnx photo.jpg ...: onnxruntime, Pillow and NumPy are all it needs."""

import json
import sys

import numpy as np
import onnxruntime
from PIL import Image, ImageOps

session = onnxruntime.InferenceSession(sys.argv[1])
classes = json.loads(session.get_modelmeta().custom_metadata_map["evergrow.classes"])
for path in sys.argv[2:]:
    image = np.asarray(ImageOps.exif_transpose(Image.open(path)).convert("RGB"))
    index, probabilities, _, is_unknown = session.run(None, {"images": image[None]})
    name = "unknown" if is_unknown[0] else classes[index[0]]
    print(path, name, f"{probabilities[0, index[0]]:.4f}", sep="\t")

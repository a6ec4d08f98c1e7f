"""Networks in folders of Hugging Face transformers and timm.

``folder`` reads the files of a folder and checks them before a library sees them,
``transformers_model`` and ``timm_model`` build the network with its library and find out how images
are prepared for it, ``features`` says which output is the embedding, and ``conversion`` makes an
ONNX file of it, which an embedder runs, caches and saves as any other.
"""

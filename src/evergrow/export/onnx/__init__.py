"""ONNX files from fitted estimators.

``model_file`` puts a file together, transformers of scikit-learn included: ``images`` goes from
pixels to vectors, with ``resizing`` in front of the network, and ``heads`` goes from vectors to
answers. ``graph`` is what all of them add operators to, and ``weights`` stores numbers in fewer
bytes. ``comparison`` runs a file next to the model that it was made from.
"""

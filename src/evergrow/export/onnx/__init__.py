"""ONNX files from fitted estimators."""

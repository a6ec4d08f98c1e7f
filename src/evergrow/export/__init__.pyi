from .onnx.model_file import save_onnx, to_onnx

__all__ = ["save_onnx", "to_onnx"]

from .html.page_file import save_html, to_html
from .onnx.model_file import save_onnx, to_onnx

__all__ = ["save_html", "save_onnx", "to_html", "to_onnx"]

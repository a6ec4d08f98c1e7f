from .formats import save_as
from .html.page_file import save_html, to_html
from .onnx.comparison import Comparison, compare_onnx
from .onnx.model_file import save_onnx, to_onnx

__all__ = [
    "Comparison",
    "compare_onnx",
    "save_as",
    "save_html",
    "save_onnx",
    "to_html",
    "to_onnx",
]

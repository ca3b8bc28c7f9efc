"""Trained networks at work, where keras_rin is not installed."""

from keras_rin.export import _removed
from keras_rin.export._c.cost import Cost
from keras_rin.export._c.export_c import export_c
from keras_rin.export._c.header import Header
from keras_rin.export._c.header_check import HeaderCheck
from keras_rin.export._files.litert import export_litert
from keras_rin.export._files.onnx import export_onnx
from keras_rin.export._files.saved_model import export_saved_model
from keras_rin.export._files.streaming_file import StreamingFile
from keras_rin.export._step.streaming_step import streaming_step

__all__ = [
    "Cost",
    "Header",
    "HeaderCheck",
    "StreamingFile",
    "export_c",
    "export_litert",
    "export_onnx",
    "export_saved_model",
    "streaming_step",
]


def __getattr__(name):
    if name in ("check_header", "export_streaming"):
        return getattr(_removed, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""Trained networks at work, where keras_rin is not installed."""

from keras_rin.export._cost import Cost
from keras_rin.export._export_streaming import StreamingFile
from keras_rin.export._export_streaming import export_streaming
from keras_rin.export._header import Header
from keras_rin.export._header_check import HeaderCheck
from keras_rin.export._removed import check_header as check_header
from keras_rin.export._streaming_step import streaming_step

__all__ = [
    "Cost",
    "Header",
    "HeaderCheck",
    "StreamingFile",
    "export_streaming",
    "streaming_step",
]

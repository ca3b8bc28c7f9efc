"""SavedModel, LiteRT and ONNX: a file for each format."""

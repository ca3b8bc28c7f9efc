"""Complete models, ready to compile."""

from keras_rin.models._residual_convnet import residual_convnet

__all__ = ["residual_convnet"]

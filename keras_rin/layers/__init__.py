"""Recurrent and residual layers parametrized by an offset from the identity."""

from keras_rin.layers._deep_transition_rin_cell import DeepTransitionRINCell
from keras_rin.layers._linear_residual import LinearResidual
from keras_rin.layers._min_gru import MinGRU
from keras_rin.layers._min_gru_cell import MinGRUCell
from keras_rin.layers._noisy_rnn import NoisyRNN
from keras_rin.layers._rate_rnn import RateRNN
from keras_rin.layers._rate_rnn_cell import RateRNNCell
from keras_rin.layers._residual_conv2d import ResidualConv2D
from keras_rin.layers._residual_dense import ResidualDense
from keras_rin.layers._residual_rnn import ResidualRNN
from keras_rin.layers._residual_rnn_cell import ResidualRNNCell
from keras_rin.layers._rin import RIN
from keras_rin.layers._rin_cell import RINCell
from keras_rin.layers._stream_features import StreamFeatures

__all__ = [
    "RIN",
    "DeepTransitionRINCell",
    "LinearResidual",
    "MinGRU",
    "MinGRUCell",
    "NoisyRNN",
    "RINCell",
    "RateRNN",
    "RateRNNCell",
    "ResidualConv2D",
    "ResidualDense",
    "ResidualRNN",
    "ResidualRNNCell",
    "StreamFeatures",
]

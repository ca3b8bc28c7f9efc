"""ConvolutionStep: a causal convolution of the next samples, as a layer."""

import keras
from keras import ops


class ConvolutionStep(keras.layers.Layer):
    """The convolution of x and the samples before it, which are a state."""

    def __init__(self, layer):
        super().__init__(name=f"{layer.name}_step", dtype=layer.dtype_policy)
        self.layer = layer

    def call(self, x, before):
        layer = self.layer
        samples = ops.concatenate([before, x], axis=1)
        y = ops.conv(
            samples,
            layer.kernel,
            layer.strides[0],
            dilation_rate=layer.dilation_rate[0],
            data_format="channels_last",
        )
        if layer.use_bias:
            y += layer.bias
        if layer.activation is not None:
            y = layer.activation(y)
        return y, samples[:, x.shape[1] :]

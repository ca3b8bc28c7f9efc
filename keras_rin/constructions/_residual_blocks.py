"""ResidualDenseStack: the blocks of `perfect_fit` in one layer."""

from typing import Any

import keras
from keras import ops

# What version 0.1.0, in which this layer was public, wrote beside the sizes.
SIZES = ("units", "depth")
DEFAULTS = {"activation": "relu", "use_bias": True}


@keras.saving.register_keras_serializable(package="keras_rin")
class ResidualDenseStack(keras.layers.Layer):
    """h_{i+1} = h_i + relu(h_i U_i + s_i) V_i, for all blocks i in one loop.

    The weights of all blocks lie along a leading axis, so that a thousand
    blocks build, save and compile as fast as one layer. A file names weights
    after the class, which therefore keeps the name of version 0.1.0.
    """

    def __init__(self, units: int, depth: int, **options: Any):
        super().__init__(**options)
        # On TensorFlow, XLA has no gradient of `keras.ops.scan`, and the
        # compiler of Torch unrolls it: `jit_compile="auto"` stays off.
        self.supports_jit = keras.backend.backend() == "jax"
        self.units, self.depth = units, depth

    def build(self, input_shape):
        width = input_shape[-1]
        for name, shape in {
            "kernel": (self.depth, width, self.units),
            "output_kernel": (self.depth, self.units, width),
            "bias": (self.depth, self.units),
        }.items():
            weight = self.add_weight(shape, "zeros", name=name)
            setattr(self, name, weight)

    def call(self, h):
        def block(h, weights):
            kernel, output_kernel, bias = weights
            active = ops.relu(ops.matmul(h, kernel) + bias)
            return h + ops.matmul(active, output_kernel), None

        weights = tuple(ops.convert_to_tensor(w) for w in self.weights)
        return ops.scan(block, h, weights)[0]

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        sizes = {name: getattr(self, name) for name in SIZES}
        return {**super().get_config(), **sizes}

    @classmethod
    def from_config(cls, config):
        if "width" in config:  # of version 0.1.0
            config = {**config, "units": config["width"]}
            del config["width"]
        names = {"name", "trainable", "dtype", *SIZES}
        others = {
            name: value
            for name, value in config.items()
            if name not in names and not name.endswith("_initializer")
        }
        if any(value != DEFAULTS.get(name) for name, value in others.items()):
            raise ValueError(
                "`ResidualDenseStack` has become the layer of `perfect_fit`, "
                f"with {DEFAULTS} alone: write a stack of `ResidualDense`, or "
                f"load the file with version 0.1.0. Received: {others}"
            )
        return cls(**{name: config[name] for name in names & config.keys()})

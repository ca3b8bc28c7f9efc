"""Classes that files of earlier versions name and that are public no more."""

import keras


@keras.saving.register_keras_serializable(package="keras_rin")
class FixedProjection(keras.layers.Dense):
    """y = x P, of version 0.1.0: today a Dense that is not trained."""

    @classmethod
    def from_config(cls, config):
        config = {**config, "use_bias": False, "trainable": False}
        config.pop("seed", None)  # of the initializer
        return cls(**config)


@keras.saving.register_keras_serializable(package="keras_rin")
class AdamWithMultipliers(keras.optimizers.Adam):
    """Adam of version 0.1.0 with learning rates by weight: refused."""

    @classmethod
    def from_config(cls, config):
        raise ValueError(
            "The model was compiled with `AdamWithMultipliers` of keras_rin "
            "0.1.0, which later versions do not have: load it with "
            "`compile=False` and compile it with `keras.optimizers.Adam`."
        )

"""RateRNN: a network of firing rates in continuous time."""

from collections.abc import Callable
from typing import Any

import keras

from keras_rin import _arguments
from keras_rin.layers._noisy_rnn import beside_noise
from keras_rin.layers._rate_rnn_cell import RateRNNCell
from keras_rin.layers._sequence_layer import CellLayer


@keras.saving.register_keras_serializable(package="keras_rin")
class RateRNN(CellLayer):
    """Rate network: a leaky recurrent layer in continuous time, by Euler steps.

    h_t = h_{t-1} + (dt / tau) (-h_{t-1} + phi(h_{t-1}) J + x_t W + b)
          + sqrt(2 dt / tau) noise xi_t

    xi_t is drawn from N(0, 1) for each unit and step. h are the currents of
    the units and phi(h) their rates, as in Sompolinsky, Crisanti and Sommers,
    1988. The output is h: a read-out of rates follows as
    `keras.layers.Activation("tanh")`. With noise alone, h has the standard
    deviation `noise` in the limit of small dt.

    Of a linear layer the effective recurrent matrix is
    (1 - dt / tau) I + (dt / tau) J: an identity that decays, and an offset.

    With `rank`, J = N M^T / units is stored as its `left_vectors` N and
    `right_vectors` M, both `(units, rank)`, with entries of order 1. In the
    column vectors of Mastrogiuseppe and Ostojic, 2018, this is M N^T / units.

    Args:
        units: Positive integer, dimensionality of the state and the output.
        tau: Positive number, the time constant.
        dt: Positive number up to `tau`, the duration of a time step, in the
            unit of `tau`. Defaults to 1.
        activation: Activation function phi. Defaults to `"tanh"`. If you pass
            `None`, no activation is applied.
        noise: Number of at least 0, as above. Defaults to 0.
        rank: Positive integer, the rank of J. Defaults to `None`: J is stored
            as a matrix.
        use_bias: Boolean, whether there is a bias b. Defaults to `True`.
        kernel_initializer: Initializer of W. Defaults to `"glorot_uniform"`.
        recurrent_initializer: Initializer of J, or of M and N. Defaults to
            `None`: a normal distribution of variance 1 / units, of M and N 1.
        bias_initializer: Initializer of b. Defaults to `"zeros"`.
        inference_noise: Boolean, whether there is noise in inference too.
            Defaults to `False`.
        seed: Integer, random seed of the noise. Defaults to `None`.
        **kwargs: `kernel_regularizer`, `recurrent_regularizer`,
            `bias_regularizer`, `kernel_constraint`, `recurrent_constraint` and
            `bias_constraint`; `name`, `dtype`, `trainable`; and the options of
            a sequence, which are those of `RIN`: `return_sequences`,
            `return_state`, `go_backwards`, `stateful`, `unroll`,
            `zero_output_for_mask`.

    Call arguments are those of `RIN`, with `resets`.

    Raises:
        ValueError: If an argument is not as above, or the batch size of a
            stateful layer changes.

    Example:

    >>> layer = keras_rin.layers.RateRNN(64, tau=10.0, rank=2)
    >>> tuple(layer(np.ones((32, 10, 4))).shape)
    (32, 64)

    Reference:
        Sompolinsky, Crisanti and Sommers, 1988, Chaos in random neural
        networks; Mastrogiuseppe and Ostojic, 2018, Linking connectivity,
        dynamics, and computations in low-rank recurrent neural networks
        (arXiv 1711.09672).
    """

    CELL, OPTIONS = RateRNNCell, ("noise", "seed", "inference_noise")

    def __init__(
        self,
        units: int,
        tau: float,
        dt: float = 1.0,
        activation: str | Callable | None = "tanh",
        noise: float = 0.0,
        rank: int | None = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = None,
        bias_initializer: Any = "zeros",
        inference_noise: bool = False,
        seed: int | None = None,
        **kwargs: Any,
    ):
        super().__init__("rate_rnn_cell", locals(), kwargs)
        self.noise = _arguments.finite_number("noise", noise, at_least=0)
        self.cell.noise_columns = self.cell.units if self.noise else 0
        self.inference_noise = bool(inference_noise)
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def _cell_inputs(self, sequences, training):
        if not self.noise or not (training or self.inference_noise):
            return sequences
        stddev = self.noise * (2 * self.dt / self.tau) ** 0.5
        return beside_noise(self, sequences, stddev)

    @property
    def recurrent_kernel(self) -> Any:
        """The matrix J `(units, units)`, from rows to columns."""
        return self.cell.recurrent_kernel

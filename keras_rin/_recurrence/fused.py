"""The fused recurrences of a state that is carried by the identity.

h_t = phi(a_t),               a_t = x_t W + b + h_{t-1} U + h_{t-1}
h_t = h_{t-1} + phi(a_t) V,   a_t = x_t W + b + h_{t-1} U

The second one has an `output_kernel` V. `forward.py` has these formulas and
`backward.py` their adjoints. Both go through the sequence in pieces, and
through a piece in time steps. The inputs of a piece are projected at once, and
the gradients of all weights are products over a piece: a time step is one
matrix product, or two, and the activation, in either direction, and only the
hidden states of all steps are kept in memory. With `recompute` only the last
one of each piece is, and the backward pass runs each piece again.
"""

import functools
import math

import keras
from keras import ops

from keras_rin._recurrence.activations import LOOPS_OF_TORCH
from keras_rin._recurrence.activations import fastest_activation
from keras_rin._recurrence.backends import differentiable
from keras_rin._recurrence.backends import first_derivative_only
from keras_rin._recurrence.backends import keras_predicts
from keras_rin._recurrence.backends import pays_to_compile
from keras_rin._recurrence.backends import run_rnn_of_torch
from keras_rin._recurrence.backends import runs_cudnn
from keras_rin._recurrence.backends import with_xla
from keras_rin._recurrence.backends import without_forward_mode
from keras_rin._recurrence.backward import backward
from keras_rin._recurrence.forward import forward
from keras_rin._recurrence.forward import run_piece
from keras_rin._recurrence.operands import has_more_units_than_features
from keras_rin._recurrence.operands import join_pieces
from keras_rin._recurrence.operands import padded
from keras_rin._recurrence.operands import project

BACKENDS = ("tensorflow", "jax", "torch")

# The largest number of pieces of a sequence, and the fewest steps of a piece.
MOST_PIECES, FEWEST_STEPS = 16, 16

# The steps of a piece of a sequence of unknown length that Keras predicts: XLA
# compiles one piece, whatever the length.
COMPILED_STEPS = 128


def identity_recurrence(
    operands,
    activation,
    margin=None,
    return_sequences=True,
    recompute=False,
):
    """The hidden states h_1 to h_T `(batch, time, units)`, or h_T.

    `activation` is phi, a key of `PULLBACKS`. Time steps where the mask is
    `False` leave the hidden state unchanged. With `recompute` no more states
    than the square root of `time` are kept. On TensorFlow XLA compiles the
    loops where that pays, even if the model is not compiled.

    Returns these and, with a `margin`, the sum of relu(a_t + margin) over units
    and unmasked time steps, `(batch,)` in float32, else `None`.
    """
    # Custom gradients of TensorFlow take no variables.
    operands = operands.replaced(map(ops.copy, operands.tensors()))
    time = ops.shape(operands.x)[1]
    loop_of_torch = LOOPS_OF_TORCH.get(activation)
    is_elman = operands.output_kernel is None and operands.mask is None
    if loop_of_torch and is_elman and runs_cudnn(operands.x):
        return run_rnn_of_torch(
            loop_of_torch, operands.tensors(), return_sequences
        ), None
    tensors = operands.tensors()
    is_prediction = keras_predicts(*tensors)
    if is_prediction and not isinstance(time, int):
        pieces = ops.maximum(-(-time // COMPILED_STEPS), 1)
        missing = pieces * COMPILED_STEPS - time
    else:
        pieces, missing = _divide(time, recompute)
    is_padded = not isinstance(missing, int) or missing > 0
    operands = padded(operands, missing if is_padded else None)
    tensors = operands.tensors()
    recurrence = _differentiable(
        *(operands, activation, margin, pieces, return_sequences),
        recompute=recompute or is_prediction,
        compiled=is_prediction or pays_to_compile(tensors),
    )
    states, *activity = without_forward_mode(recurrence)(*tensors)
    if is_padded and return_sequences:
        states = states[:, :time]
    return states, *(activity or [None])


def _differentiable(
    operands,
    activation,
    margin,
    pieces,
    return_sequences,
    recompute,
    compiled,
):
    """The recurrence as a function of its tensors that has a gradient."""
    maybe_compile = with_xla if compiled else (lambda loop: loop)
    run_forward = maybe_compile(forward)
    if compiled and operands.x.shape[1] is None:
        run_forward = functools.partial(forward, run=with_xla(run_piece))
    phi = fastest_activation(activation, compiled)

    # All tensors are arguments, because a transformation replaces arguments
    # and does not know a tensor of the surrounding function.
    def recurrence(*tensors):
        # Otherwise, eager TensorFlow would also differentiate the loop.
        constants = operands.replaced(stop_gradients(tensors))
        stores_all = return_sequences or not recompute
        states, *activity = run_forward(
            phi, pieces, constants, margin, stores_all
        )
        batch, time, _ = ops.shape(constants.x)
        units = constants.recurrent_kernel.shape[0]
        shape = pieces, time // pieces if stores_all else 1, batch, units
        states = ops.reshape(states, shape)
        stored_states = states[:, -1:] if recompute else states

        def pull_back(upstream):
            # In a branch or loop of TensorFlow this is another graph, which
            # has to have the tensors before it calls a compiled function.
            saved = operands.replaced(stop_gradients(constants.tensors()))
            states, d_outputs, *d_activity = stop_gradients(
                (stored_states, *upstream)
            )
            batch, time, _ = ops.shape(saved.x)
            steps = [time] if return_sequences else []
            d_outputs = ops.reshape(d_outputs, (batch, *steps, units))
            again = phi if recompute else None
            d_x, *d_others = maybe_compile(backward)(
                *(activation, saved, margin, states, d_outputs),
                *(d_activity or [None]),
                phi=again,
            )
            if not has_more_units_than_features(saved.kernel):
                d_x = project(d_x, ops.transpose(saved.kernel))
            differentiated = tensors[: len(d_others) + 1]
            d_tensors = [
                first_derivative_only(gradient, *upstream, *differentiated)
                for gradient in (join_pieces(d_x), *d_others)
            ]
            return *d_tensors, *[None] * (len(tensors) - len(d_tensors))

        outputs = join_pieces(states) if return_sequences else states[-1, -1]
        return (outputs, *activity), pull_back

    return differentiable(recurrence)


def stop_gradients(tensors):
    return tuple(ops.stop_gradient(tensor) for tensor in tensors)


def _divide(time, recompute=False):
    """The number of equal pieces of a sequence, and the steps it lacks.

    The temporary arrays of a piece, z and dL/dz, are then small compared with
    the hidden states, which are kept for all steps. With `recompute`, a piece
    has about as many steps as there are pieces, whose last states are kept.
    """
    if isinstance(time, int):
        most, others = min(MOST_PIECES, time // FEWEST_STEPS), 0
        if recompute:
            most = math.isqrt(time)
            others = most // 2
        most = max(1, most)
        counts = range(most, others, -1)
        pieces = next((n for n in counts if time % n == 0), most)
    elif recompute and keras.backend.backend() == "tensorflow":
        root = ops.sqrt(ops.cast(time, "float32"))
        pieces = ops.maximum(ops.cast(root, "int32"), 1)
    else:
        return 1, 0  # The number of steps is unknown while this is traced.
    return pieces, -time % pieces

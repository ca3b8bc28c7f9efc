"""The fused recurrence h_t = phi(x_t W + b + h_{t-1} + h_{t-1} U).

`_forward` is this formula and `_backward` its adjoint. Both go through the
sequence in pieces, and through a piece in time steps. The inputs of a piece are
projected at once, and the gradients of W, b and U are products over a piece:
a time step is one matrix product and the activation, in either direction, and
only the hidden states of all steps are kept in memory. With `recompute` only
the last one of each piece is, and `_backward` runs each piece again.
"""

import math
from operator import methodcaller

import keras
from keras import ops

from keras_rin._backends import default_unroll
from keras_rin._backends import first_derivative_only
from keras_rin._backends import keras_predicts
from keras_rin._backends import pays_to_compile
from keras_rin._backends import run_rnn_of_torch
from keras_rin._backends import runs_cudnn
from keras_rin._backends import scan
from keras_rin._backends import where
from keras_rin._backends import with_xla
from keras_rin._backends import without_forward_mode

BACKENDS = ("tensorflow", "jax", "torch")

# The largest number of pieces of a sequence, and the fewest steps of a piece.
MOST_PIECES, FEWEST_STEPS = 16, 16


def _scale_by_slope(gradient):
    # The slope of Keras, which TensorFlow rounds to float32.
    minus_one = -ops.ones((), gradient.dtype)
    return gradient * -keras.activations.leaky_relu(minus_one)


# Each function computes dL/da from g = dL/dh and from h = phi(a), without a.
PULLBACKS = {
    keras.activations.linear: lambda g, h: g,
    keras.activations.relu: lambda g, h: where(h > 0, g, 0.0),
    keras.activations.leaky_relu: lambda g, h: where(
        h > 0, g, _scale_by_slope(g)
    ),
    keras.activations.elu: lambda g, h: where(h > 0, g, g * (h + 1.0)),
    keras.activations.tanh: lambda g, h: g * (1.0 - h * h),
    keras.activations.sigmoid: lambda g, h: g * h * (1.0 - h),
}

# A function of `keras.ops` takes longer on Torch than a time step: these are
# methods of its tensors.
TORCH_ACTIVATIONS: dict = {
    getattr(keras.activations, name): methodcaller(name)
    for name in ("relu", "tanh", "sigmoid")
}

# The loops of Torch that cuDNN runs as one program.
LOOPS_OF_TORCH: dict = {
    keras.activations.relu: "rnn_relu",
    keras.activations.tanh: "rnn_tanh",
}

# XLA computes a plain ReLU twice, for the state and for the array of stored
# states, but a selection only once. Both propagate NaN.
XLA_ACTIVATIONS: dict = {
    keras.activations.relu: lambda a: ops.where(a <= 0, 0.0, a)
}


def identity_recurrence(
    x,
    kernel,
    bias,
    initial_state,
    offset,
    activation,
    mask=None,
    return_sequences=True,
    recompute=False,
):
    """The hidden states h_1 to h_T `(batch, time, units)`, or h_T.

    `x` is x `(batch, time, features)`, `kernel` W `(features, units)`, `bias` b
    `(units,)`, `initial_state` h_0 `(batch, units)`, `offset` U `(units,
    units)`, and `activation` phi, a key of `PULLBACKS`. Time steps where `mask`
    `(batch, time)` is `False` leave the hidden state unchanged. With
    `recompute` no more states than the square root of `time` are kept. On
    TensorFlow XLA compiles the loops where that pays, even if the model is not
    compiled.
    """
    time = ops.shape(x)[1]
    pieces, missing = _divide(time, recompute)
    is_padded = not isinstance(missing, int) or missing > 0
    operands = _operands(
        *(x, kernel, bias, initial_state, offset, mask),
        missing=missing if is_padded else None,
    )
    loop_of_torch = LOOPS_OF_TORCH.get(activation)
    if loop_of_torch and len(operands) == 5 and runs_cudnn(x):
        return run_rnn_of_torch(loop_of_torch, operands, return_sequences)
    is_prediction = keras_predicts(*operands)
    recurrence = _differentiable(
        *(activation, pieces, return_sequences),
        recompute=recompute or is_prediction,
        compiled=is_prediction or pays_to_compile(operands),
    )
    states = without_forward_mode(recurrence)(*operands)
    return states[:, :time] if is_padded and return_sequences else states


def _operands(x, kernel, bias, initial_state, offset, mask, missing):
    """The tensors that are differentiated and, if there is one, the mask.

    With `missing` masked time steps at the end.
    """
    batch, time, _ = ops.shape(x)
    if missing is not None:
        mask = ops.ones((batch, time), "bool") if mask is None else mask
        x = ops.pad(x, ((0, 0), (0, missing), (0, 0)))
        mask = ops.pad(mask, ((0, 0), (0, missing)))
    # TensorFlow may know the batch size of one tensor and not of another, and
    # its loops refuse a carry that loses it. Hence every `ops.reshape` here.
    initial_state = ops.reshape(initial_state, (batch, offset.shape[1]))
    operands = [x, kernel, bias, initial_state, offset]
    if mask is not None:
        operands.append(ops.reshape(mask, (batch, ops.shape(x)[1])))
    # Custom gradients of TensorFlow take no variables.
    return [ops.copy(tensor) for tensor in operands]


def _differentiable(activation, pieces, return_sequences, recompute, compiled):
    """The recurrence as a function of its operands that has a gradient."""
    maybe_compile = with_xla if compiled else (lambda loop: loop)
    phi = _fastest_activation(activation, compiled)

    # All tensors are arguments, because a transformation replaces arguments
    # and does not know a tensor of the surrounding function.
    @ops.custom_gradient
    def recurrence(*operands):
        # Otherwise, eager TensorFlow would also differentiate the loop.
        constants = _stop_gradients(operands)
        stores_all = return_sequences or not recompute
        states = maybe_compile(_forward)(phi, pieces, constants, stores_all)
        batch, time, _ = ops.shape(operands[0])
        units = operands[4].shape[1]
        steps = time // pieces if stores_all else 1
        states = ops.reshape(states, (pieces, steps, batch, units))
        stored_states = states[:, -1:] if recompute else states

        def gradients(*args, upstream=None):
            # Torch passes `operands` and `upstream`, others `upstream`.
            upstream = args[0] if upstream is None else upstream
            # In a branch or loop of TensorFlow this is another graph, which
            # has to have the tensors before it calls a compiled function.
            saved = _stop_gradients(constants)
            states, d_outputs = _stop_gradients((stored_states, upstream))
            batch, time, _ = ops.shape(saved[0])
            steps = [time] if return_sequences else []
            d_outputs = ops.reshape(d_outputs, (batch, *steps, units))
            again = phi if recompute else None
            d_x, *d_others = maybe_compile(_backward)(
                activation, saved, states, d_outputs, again
            )
            if not _has_more_units_than_features(saved[1]):
                d_x = _project(d_x, ops.transpose(saved[1]))
            d_operands = [
                first_derivative_only(gradient, upstream, *operands[:5])
                for gradient in (_join_pieces(d_x), *d_others)
            ]
            return *d_operands, *[None] * len(operands[5:])

        outputs = _join_pieces(states) if return_sequences else states[-1, -1]
        return outputs, gradients

    return recurrence


def _stop_gradients(tensors):
    return tuple(ops.stop_gradient(tensor) for tensor in tensors)


def _scan_steps(step, carry, steps, reverse=False):
    return scan(step, carry, steps, reverse, unroll=default_unroll())


def _forward(phi, pieces, operands, stores_all):
    """The hidden states, `(pieces, steps, batch, units)`.

    Without `stores_all` the last ones of the pieces, `(pieces, batch, units)`.
    """

    def run_piece(h, p):
        h, states = _run_piece(phi, pieces, operands, h, p)
        return h, states if stores_all else h

    return scan(run_piece, operands[3], pieces)[1]


def _run_piece(phi, pieces, operands, h, p):
    """The last hidden state of piece p, and those of all its steps."""
    x, kernel, bias, _, offset, *mask = operands
    z = _project(_cut_piece(x, pieces, p), kernel) + bias
    unmasked = [_cut_piece(m, pieces, p)[..., None] for m in mask]

    def step(h, i):
        new_h = phi(z[i] + h + h @ offset)
        h = where(unmasked[0][i], new_h, h) if mask else new_h
        return h, h

    return _scan_steps(step, h, ops.shape(z)[0])


def _backward(activation, operands, states, upstream, phi=None):
    """The gradients of x or z (in pieces), W, b, h_0 and U.

    Of x and z = x W + b, the one with fewer values is returned: that of x can
    be made from that of z, which TensorFlow leaves out where nobody asks for
    it. `upstream` is the gradient with respect to all hidden states
    `(batch, time, units)` or to the last one `(batch, units)`. A step i of a
    piece is step t of the sequence. With `phi`, `states` are the last ones of
    the pieces, and the others are computed again.
    """
    x, kernel, bias, initial_state, offset, *mask = operands
    pull_back, offset_transposed = PULLBACKS[activation], ops.transpose(offset)
    pieces, _, _, units = ops.shape(states)
    steps = ops.shape(x)[1] // pieces
    unmasked = [_mask_by_step(m) for m in mask]

    def through_step(g, t):
        """dL/dh_{t-1} from dL/da_t, or from dL/dh_t if t is masked."""
        d_h = g + g @ offset_transposed
        return where(unmasked[0][t], d_h, g) if mask else d_h

    def gradient_at_step(t):
        """The gradient of the loss by h_t alone."""
        if len(upstream.shape) == 3:
            return upstream[:, t]
        last = pieces * steps - 1
        if isinstance(t, int):
            return upstream if t == last else 0.0
        return ops.where(t == last, upstream, 0.0)

    def run_piece(carry, p):
        g, d_weights = carry
        h = states[p]
        if phi:
            before = states_before[p]
            h = _run_piece(phi, pieces, operands, before, p)[1]

        # The carry is dL/da_t, or dL/dh_t where t is masked: XLA would compute
        # dL/dh_t twice if it were the carry of every step.
        def step(g, i):
            t = p * steps + i
            d_h = through_step(g, t + 1) + gradient_at_step(t)
            d_a = pull_back(d_h, h[i])
            g = where(unmasked[0][t], d_a, d_h) if mask else d_a
            return g, g

        g, d_z = _scan_steps(step, g, steps, reverse=True)
        if mask:
            d_z = where(_cut_piece(mask[0], pieces, p)[..., None], d_z, 0.0)
        previous = ops.concatenate([states_before[p][None], h[:-1]])
        factors = previous, _cut_piece(x, pieces, p), ops.ones_like(h[..., :1])
        factors = ops.concatenate(factors, axis=-1)
        d_weights = d_weights + _sum_of_products(factors, d_z)
        if _has_more_units_than_features(kernel):
            return (g, d_weights), _project(d_z, ops.transpose(kernel))
        return (g, d_weights), d_z

    states_before = ops.concatenate([initial_state[None], states[:-1, -1]])
    weights = ops.concatenate([offset, kernel, bias[None]])
    carry = ops.zeros_like(initial_state), ops.zeros_like(weights)
    carry, d_x_or_z = scan(run_piece, carry, pieces, reverse=True)
    g, d_weights = carry
    d_kernel, d_bias = d_weights[units:-1], d_weights[-1]
    d_offset = d_weights[:units]
    return d_x_or_z, d_kernel, d_bias, through_step(g, 0), d_offset


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


def _cut_piece(sequence, pieces, p):
    """Piece p of a sequence `(batch, time, ...)`, time axis first."""
    batch, time, *rest = ops.shape(sequence)
    cut = ops.reshape(sequence, (batch, pieces, time // pieces, *rest))
    return ops.swapaxes(cut[:, p], 0, 1)


def _join_pieces(pieces):
    """The sequence `(batch, time, ...)` of its pieces."""
    count, steps, *rest = ops.shape(pieces)
    return ops.swapaxes(ops.reshape(pieces, (count * steps, *rest)), 0, 1)


def _mask_by_step(mask):
    """A mask `(time + 1, batch, 1)` with a masked step at the end."""
    mask = ops.pad(ops.transpose(mask), ((0, 1), (0, 0)))
    return mask[..., None]


def _has_more_units_than_features(kernel):
    return kernel.shape[0] < kernel.shape[1]


def _project(sequence, matrix):
    """Multiplies all steps of a sequence by a matrix at once."""
    flat = ops.reshape(sequence, (-1, matrix.shape[0]))
    shape = (*ops.shape(sequence)[:-1], matrix.shape[1])
    return ops.reshape(flat @ matrix, shape)


def _sum_of_products(left, right):
    """The sum over time and batch of the outer products of two sequences."""
    left = ops.reshape(left, (-1, left.shape[-1]))
    return ops.transpose(left) @ ops.reshape(right, (-1, right.shape[-1]))


def _fastest_activation(activation, compiled):
    faster = XLA_ACTIVATIONS if compiled else {}
    faster = {"jax": XLA_ACTIVATIONS, "torch": TORCH_ACTIVATIONS}.get(
        keras.backend.backend(), faster
    )
    return faster.get(activation, activation)

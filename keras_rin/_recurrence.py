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
from keras_rin._backends import pays_to_compile
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
    compiled=False,
    recompute=False,
):
    """The hidden states h_1 to h_T `(batch, time, units)`, or h_T.

    `x` is x `(batch, time, features)`, `kernel` W `(features, units)`, `bias` b
    `(units,)`, `initial_state` h_0 `(batch, units)`, `offset` U `(units,
    units)`, and `activation` phi, a key of `PULLBACKS`. Time steps where `mask`
    `(batch, time)` is `False` leave the hidden state unchanged. With `compiled`
    TensorFlow compiles the loops with XLA even if the model is not compiled:
    in a graph that is differentiated, if the number of time steps is known.
    With `recompute` no more states than the square root of `time` are kept.
    """
    batch, time, _ = ops.shape(x)
    if recompute and (missing := _count_missing_steps(x.shape[1])):
        mask = ops.ones((batch, time), "bool") if mask is None else mask
        states = identity_recurrence(
            ops.pad(x, ((0, 0), (0, missing), (0, 0))),
            *(kernel, bias, initial_state, offset, activation),
            ops.pad(mask, ((0, 0), (0, missing))),
            *(return_sequences, compiled, recompute),
        )
        return states[:, :time] if return_sequences else states
    units, pieces = offset.shape[1], _count_pieces(x.shape[1], recompute)
    recompute = recompute and pieces > 1
    # TensorFlow may know the batch size of one tensor and not of another, and
    # its loops refuse a carry that loses it. Hence every `ops.reshape` here.
    initial_state = ops.reshape(initial_state, (batch, units))
    operands = [x, kernel, bias, initial_state, offset]
    operands += [] if mask is None else [ops.reshape(mask, (batch, time))]
    # Custom gradients of TensorFlow take no variables.
    operands = [ops.copy(tensor) for tensor in operands]
    maybe_compile, phi = _choose_execution(activation, operands, compiled)

    # All tensors are arguments, because a transformation replaces arguments
    # and does not know a tensor of the surrounding function.
    @ops.custom_gradient
    def recurrence(*operands):
        # Otherwise, eager TensorFlow would also differentiate the loop.
        constants = _stop_gradients(operands)
        stores_all = return_sequences or not recompute
        states = maybe_compile(_forward)(phi, pieces, constants, stores_all)
        batch, time, _ = ops.shape(operands[0])
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
            if not _has_more_units_than_features(kernel):
                d_x = _project(d_x, ops.transpose(saved[1]))
            d_operands = [
                first_derivative_only(gradient, upstream, *operands[:5])
                for gradient in (_join_pieces(d_x), *d_others)
            ]
            return *d_operands, *[None] * len(operands[5:])

        outputs = _join_pieces(states) if return_sequences else states[-1, -1]
        return outputs, gradients

    return without_forward_mode(recurrence)(*operands)


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
    unmasked = _mask_by_step(*mask) if mask else None

    def through_step(g, t):
        """dL/dh_{t-1} from dL/da_t, or from dL/dh_t if t is masked."""
        d_h = g + g @ offset_transposed
        return where(unmasked[t], d_h, g) if mask else d_h

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
            g = where(unmasked[t], d_a, d_h) if mask else d_a
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


def _count_pieces(time, recompute=False):
    """The number of equal pieces that a sequence is divided into.

    The temporary arrays of a piece, z and dL/dz, are then small compared with
    the hidden states, which are kept for all steps. With `recompute`, a piece
    has about as many steps as there are pieces, whose last states are kept.
    """
    if not isinstance(time, int):
        return 1  # The number of steps can be undefined during tracing.
    most, others = min(MOST_PIECES, time // FEWEST_STEPS), 1
    if recompute:
        most = math.isqrt(time)
        others = most // 2
    return next((n for n in range(most, others, -1) if time % n == 0), 1)


def _count_missing_steps(time):
    """How many steps a sequence lacks to be recomputed in equal pieces."""
    if not (isinstance(time, int) and time):
        return 0
    is_divided = _count_pieces(time, recompute=True) > 1
    return 0 if is_divided else -time % math.isqrt(time)


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


def _choose_execution(activation, operands, compiled):
    """A function that compiles a pass where it pays, and phi at its fastest."""
    backend = keras.backend.backend()
    if backend == "tensorflow" and compiled and pays_to_compile(operands):
        return with_xla, XLA_ACTIVATIONS.get(activation, activation)
    activations: dict = {"jax": XLA_ACTIVATIONS, "torch": TORCH_ACTIVATIONS}
    fastest = activations.get(backend, {}).get(activation, activation)
    return (lambda loop: loop), fastest

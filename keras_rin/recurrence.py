"""The fused recurrence h_t = phi(x_t W + b + h_{t-1} + h_{t-1} U).

The inputs are projected before the loop, z_t = x_t W + b, so a time step is
one matrix product and the activation. The gradient is implemented by hand: a
step of the backward pass is again one matrix product, and the gradients of W
and U are large products over many time steps, where automatic differentiation
would accumulate them at each step. Both passes process the sequence in pieces,
so that only the hidden states of all steps are kept in memory. To add a kernel
for a device, replace `identity_recurrence`.
"""

import functools
from operator import methodcaller

import keras
from keras import ops

BACKENDS = ("tensorflow", "jax", "torch")

# A piece has at least this many values of one sequence, and the number of
# pieces is limited: each is a loop to start, and to compile if the model is
# compiled. With very few pieces the saved memory is not worth that time.
PIECE_SIZE = 2**13
FEWEST_PIECES, MOST_PIECES = 4, 16


def _where(condition, one, other):
    # `keras.ops.where` takes longer in Torch than the product of a step.
    if keras.backend.backend() == "torch":
        return one.where(condition, other)
    return ops.where(condition, one, other)


# dL/da from g = dL/dh, where h = phi(a), as a function of h alone.
PULLBACKS = {
    keras.activations.linear: lambda g, h: g,
    keras.activations.relu: lambda g, h: _where(h > 0, g, 0.0),
    keras.activations.leaky_relu: lambda g, h: _where(h > 0, g, 0.2 * g),
    keras.activations.elu: lambda g, h: _where(h > 0, g, g * (h + 1.0)),
    keras.activations.tanh: lambda g, h: g * (1.0 - h * h),
    keras.activations.sigmoid: lambda g, h: g * h * (1.0 - h),
}

# Methods of Torch tensors, faster for the same reason.
IN_TORCH = {
    getattr(keras.activations, name): methodcaller(name)
    for name in ("relu", "tanh", "sigmoid")
}

# XLA computes a plain ReLU twice, for the state and for the array of stored
# states, but a selection only once. Both propagate NaN.
IN_XLA = {keras.activations.relu: lambda a: ops.where(a <= 0, 0.0, a)}


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
):
    """Computes h_t = phi(x_t W + b + h_{t-1} + h_{t-1} U) for a whole sequence.

    Args:
        x: Tensor of shape `(batch, time, features)`, the inputs.
        kernel: Tensor or variable of shape `(features, units)`, W.
        bias: Tensor or variable of shape `(units,)`, b.
        initial_state: Tensor of shape `(batch, units)`, h_0.
        offset: Tensor or variable of shape `(units, units)`, U.
        activation: Activation function phi, a key of `PULLBACKS`.
        mask: Boolean tensor of shape `(batch, time)`. Time steps where it is
            `False` leave the hidden state unchanged. Defaults to `None`.
        return_sequences: Boolean, whether to return all hidden states.
            Defaults to `True`.
        compiled: Boolean, whether TensorFlow compiles the loops with XLA even
            if the model is not compiled. Exporters do not support such a
            graph, so use it in training only. Defaults to `False`.

    Returns:
        The hidden states h_1 to h_T `(batch, time, units)`, or h_T.

    Raises:
        NotImplementedError: If a second derivative is computed.
    """
    forward, backward, phi = _forward, _backward, activation
    count = _pieces(x.shape[1], offset.shape[0])
    numbers = range(count)
    backend = keras.backend.backend()
    if compiled and backend == "tensorflow":
        forward, backward = _with_xla(_forward), _with_xla(_backward)
        # With Python integers, each piece would be compiled separately.
        numbers = [ops.convert_to_tensor(number) for number in numbers]
    if backend == "jax" or forward is not _forward:
        phi = IN_XLA.get(activation, activation)
    if backend == "torch":
        phi = IN_TORCH.get(activation, activation)
    pieces = [(number, count) for number in numbers]

    @ops.custom_gradient
    def recurrence(*inputs):
        # Otherwise, eager TensorFlow would also differentiate the loop.
        x, kernel, bias, h, offset = map(ops.stop_gradient, inputs)
        runs = []
        for piece in pieces:
            runs.append(forward(x, kernel, bias, h, offset, mask, piece, phi))
            h = runs[-1][-1]

        def pull_back(*args, upstream=None):
            # Torch passes `inputs` and `upstream`, other backends `upstream`.
            upstream = args[0] if upstream is None else upstream
            g, every = ops.stop_gradient(upstream), None
            if return_sequences:
                g, every = ops.zeros_like(runs[-1][-1]), g
            sums, d_x = (0.0, 0.0, 0.0), []
            for piece, states in zip(pieces[::-1], runs[::-1], strict=True):
                dz, g, added = backward(
                    g, every, x, states, offset, mask, piece, activation
                )
                sums = map(ops.add, sums, added)
                d_x.append(_times(dz, ops.transpose(kernel)))
            d_kernel, d_bias, d_offset = sums
            d_x = ops.swapaxes(ops.concatenate(d_x[::-1]), 0, 1)
            gradients = d_x, d_kernel, d_bias, g, d_offset
            return tuple(_once(g, upstream, *inputs) for g in gradients)

        if not return_sequences:
            return h, pull_back
        sequences = [ops.swapaxes(states[1:], 0, 1) for states in runs]
        return ops.concatenate(sequences, axis=1), pull_back

    # Copies, because custom gradients of TensorFlow take no variables.
    return recurrence(*map(ops.copy, (x, kernel, bias, initial_state, offset)))


def _pieces(time, units):
    """The number of equal pieces that a sequence is divided into.

    The temporary arrays of a piece, z and dL/dz, are then small compared with
    the hidden states, which are kept for all steps.
    """
    known = isinstance(time, int)  # it can be undefined during tracing
    wanted = min(MOST_PIECES, time * units // PIECE_SIZE) if known else 1
    numbers = range(wanted, FEWEST_PIECES - 1, -1)
    return next((n for n in numbers if time % n == 0), 1)


def _steps(sequence, piece):
    """One piece of a sequence `(batch, time, ...)`, time axis first."""
    number, count = piece
    batch, _, *rest = ops.shape(sequence)
    pieces = ops.reshape(sequence, (batch, count, -1, *rest))
    return ops.swapaxes(ops.take(pieces, number, axis=1), 0, 1)


def _forward(x, kernel, bias, initial_state, offset, mask, piece, phi):
    """Returns `h_0` to `h_T`, of shape `(time + 1, batch, units)`."""
    z = _times(_steps(x, piece), kernel) + bias
    keep = None if mask is None else _steps(mask, piece)[:, :, None]

    def step(h, t):
        new = phi(z[t] + h + h @ offset)
        return new if mask is None else _where(keep[t], new, h)

    return _scan(step, initial_state, ops.shape(z)[0])


def _backward(last, every, x, states, offset, mask, piece, activation):
    """Returns the gradients of z, of h_0, and of W, b and U.

    `last` is the gradient with respect to h_T, `every` the gradient of the
    loss with respect to each hidden state.
    """
    pull_back = PULLBACKS[activation]
    transposed = ops.transpose(offset)
    length = ops.shape(states)[0] - 1
    every = None if every is None else _steps(every, piece)
    keep = None if mask is None else _steps(mask, piece)[:, :, None]
    # The carry is the gradient at step `t + 1` before its product, so that XLA
    # stores it directly instead of computing it twice.
    keep_next = None if mask is None else ops.roll(keep, -1, 0)

    def through_offset(g, keep):
        moved = g + g @ transposed
        return moved if keep is None else _where(keep, moved, g)

    def step(g, t):
        g = through_offset(g, None if mask is None else keep_next[t])
        g = g + _at(t, length - 1, last)
        g = g if every is None else g + every[t]
        pulled = pull_back(g, states[t + 1])
        return pulled if mask is None else _where(keep[t], pulled, g)

    dz = _scan(step, ops.zeros_like(last), length, reverse=True)
    d_initial = through_offset(dz[0], None if mask is None else keep[0])
    dz = dz if mask is None else _where(keep, dz, 0.0)
    d_kernel = _summed_products(_steps(x, piece), dz)
    d_offset = _summed_products(states[:-1], dz)
    return dz, d_initial, (d_kernel, ops.sum(dz, axis=(0, 1)), d_offset)


def _at(t, where, value):
    if isinstance(t, int):
        return value if t == where else 0.0
    return ops.where(t == where, value, 0.0)


def _times(sequence, matrix):
    """Multiplies all steps of a sequence by a matrix at once."""
    flat = ops.reshape(sequence, (-1, matrix.shape[0]))
    shape = (*ops.shape(sequence)[:-1], matrix.shape[1])
    return ops.reshape(flat @ matrix, shape)


def _summed_products(one, other):
    """The sum over time and batch of the outer products of two sequences."""
    one = ops.reshape(one, (-1, one.shape[-1]))
    return ops.transpose(one) @ ops.reshape(other, (-1, other.shape[-1]))


def _scan(step, state, length, reverse=False):
    """Stacks the states of `length` steps, `state = step(state, t)`.

    The forward pass includes the initial state, the backward pass does not.
    """
    if keras.backend.backend() == "tensorflow":
        return _tensorflow_scan(step, state, length, reverse)
    if keras.backend.backend() == "torch":
        return _bare_scan(step, state, length, reverse)

    def twice(state, t):
        state = step(state, t)
        return state, state

    steps = ops.arange(length)
    states = ops.scan(twice, state, steps, reverse=reverse)[1]
    return states if reverse else ops.concatenate([state[None], states])


def _bare_scan(step, state, length, reverse):
    states = [] if reverse else [state]
    for t in reversed(range(length)) if reverse else range(length):
        state = step(state, t)
        states.append(state)
    return ops.stack(states[::-1] if reverse else states)


def _tensorflow_scan(step, state, length, reverse):
    """Sets no `maximum_iterations`, so that XLA finds the trip count."""
    import tensorflow as tf

    def body(i, state, states):
        t = length - 1 - i if reverse else i
        state = step(state, t)
        return i + 1, state, states.write(t if reverse else t + 1, state)

    size = length if reverse else length + 1
    states = tf.TensorArray(state.dtype, size, element_shape=state.shape)
    states = states if reverse else states.write(0, state)
    loop = (0, state, states)
    return tf.while_loop(lambda i, *_: i < length, body, loop)[2].stack()


@functools.cache
def _with_xla(loop):
    import tensorflow as tf

    return tf.function(loop, jit_compile=True)


@ops.custom_gradient
def _once(gradient, *made_of):
    """The gradient, which raises an error if it is differentiated."""
    return gradient, _no_second_derivative


def _no_second_derivative(*args, **kwargs):
    raise NotImplementedError(
        "The fused recurrence supports first derivatives only. For second "
        "derivatives, create the layer with `fused=False`."
    )

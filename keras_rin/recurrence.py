"""The one loop: h_t = phi(z_t + h_{t-1} + h_{t-1} U), and its gradient.

z holds the projected inputs x_t W + b of the whole sequence, so that a step is
one product and the activation. The gradient is written by hand: backwards, a
step is again one product, and the gradient of U is a single product over all
steps, where automatic differentiation would add one up at each. A kernel for
some device replaces `identity_recurrence`, and nothing else.
"""

import functools

import keras
from keras import ops

BACKENDS = ("tensorflow", "jax", "torch")

# How g = dL/dh passes back through h = phi(a), told from h alone.
PULLBACKS = {
    keras.activations.linear: lambda g, h: g,
    keras.activations.relu: lambda g, h: ops.where(h > 0, g, 0.0),
    keras.activations.leaky_relu: lambda g, h: ops.where(h > 0, g, 0.2 * g),
    keras.activations.elu: lambda g, h: ops.where(h > 0, g, g * (h + 1.0)),
    keras.activations.tanh: lambda g, h: g * (1.0 - h * h),
    keras.activations.sigmoid: lambda g, h: g * h * (1.0 - h),
}

# XLA computes a plain ReLU twice, for the state and for its place among the
# stored states. A selection it computes once (NaN passes through both).
IN_XLA = {keras.activations.relu: lambda a: ops.where(a <= 0, 0.0, a)}


def identity_recurrence(
    z,
    initial_state,
    offset,
    activation,
    mask=None,
    return_sequences=True,
    compiled=False,
):
    """Runs h_t = phi(z_t + h_{t-1} + h_{t-1} U) over a whole sequence.

    Args:
        z: Tensor of shape `(time, batch, units)`, the projected inputs.
        initial_state: Tensor of shape `(batch, units)`, h_0.
        offset: Tensor or variable of shape `(units, units)`, U.
        activation: Function phi, one of `PULLBACKS`.
        mask: Boolean tensor of shape `(time, batch)`: where it is `False` the
            state is held. Defaults to `None`: every step counts.
        return_sequences: Boolean, whether to return every state. Defaults to
            `True`.
        compiled: Boolean, whether TensorFlow compiles the loops with XLA even
            where the model around them is not compiled. Such a graph is for
            training: exporters do not take it. Defaults to `False`.

    Returns:
        The states h_1 to h_T `(time, batch, units)`, or h_T alone.

    Raises:
        NotImplementedError: If a derivative of the gradient is asked for.
    """
    forward, backward, phi = _forward, _backward, activation
    backend = keras.backend.backend()
    if compiled and backend == "tensorflow":
        forward, backward = _with_xla(_forward), _with_xla(_backward)
    if backend == "jax" or forward is not _forward:
        phi = IN_XLA.get(activation, activation)

    @ops.custom_gradient
    def recurrence(*inputs):
        # Eager TensorFlow would otherwise differentiate the loop as well.
        z, h0, u = (ops.stop_gradient(x) for x in inputs)
        states = forward(z, h0, u, mask, phi)

        @ops.custom_gradient
        def pull_back(upstream):
            upstream = ops.stop_gradient(upstream)
            dz, d_initial = backward(upstream, states, u, mask, activation)
            d_offset = _summed_products(states[:-1], dz)
            return (dz, d_initial, d_offset), _no_second_derivative

        # Torch passes `inputs` and `upstream`, the other backends `upstream`.
        return states[1:] if return_sequences else states[-1], (
            lambda *args, upstream=None: pull_back(
                args[0] if upstream is None else upstream
            )
        )

    # Copies, for TensorFlow's custom gradients take tensors, not variables.
    return recurrence(z, ops.copy(initial_state), ops.copy(offset))


def _forward(z, initial_state, offset, mask, phi):
    """Returns `h_0` to `h_T`, of shape `(time + 1, batch, units)`."""

    def step(h, t):
        new = phi(z[t] + h + h @ offset)
        return new if mask is None else ops.where(mask[t, :, None], new, h)

    return _scan(step, initial_state, ops.shape(z)[0])


def _backward(upstream, states, offset, mask, activation):
    """Returns the gradients of `z` and of the initial state."""
    pull_back = PULLBACKS[activation]
    transposed = ops.transpose(offset)
    length = ops.shape(states)[0] - 1
    arriving = _arriving(upstream, length)
    keep = None if mask is None else mask[:, :, None]
    # The scan carries what leaves step `t + 1` before its product, so that
    # XLA can write it where it is stored instead of computing it twice.
    keep_next = None if mask is None else ops.roll(keep, -1, 0)

    def through_offset(g, keep):
        moved = g + g @ transposed
        return moved if keep is None else ops.where(keep, moved, g)

    def step(g, t):
        g = through_offset(g, None if mask is None else keep_next[t])
        g = g + arriving(t)
        pulled = pull_back(g, states[t + 1])
        return pulled if mask is None else ops.where(keep[t], pulled, g)

    dz = _scan(step, ops.zeros_like(states[0]), length, reverse=True)
    d_initial = through_offset(dz[0], None if mask is None else keep[0])
    return dz if mask is None else ops.where(keep, dz, 0.0), d_initial


def _arriving(upstream, length):
    """The gradient that the loss gives h_t itself, as a function of t."""
    if len(upstream.shape) == 3:
        return lambda t: upstream[t]

    def at_the_last_step(t):
        if isinstance(t, int):
            return upstream if t == length - 1 else 0.0
        return ops.where(t == length - 1, upstream, 0.0)

    return at_the_last_step


def _summed_products(states, dz):
    """The sum over time and batch of the outer products of two sequences."""
    # One product of all steps; in two halves where that is known to go, for
    # XLA on a CPU is then a fifth faster and nothing else notices.
    time, units = states.shape[0], states.shape[-1]
    halves = 1 if time is None or time % 2 else 2
    states = ops.reshape(states, (halves, -1, units))
    dz = ops.reshape(dz, (halves, -1, units))
    return ops.sum(ops.swapaxes(states, 1, 2) @ dz, axis=0)


def _scan(step, state, length, reverse=False):
    """Stacks the states of `length` steps, `state = step(state, t)`.

    Forwards the initial state comes first, backwards it is left out.
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
    """Counts up and sets no `maximum_iterations`: XLA finds the trip count."""
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


def _no_second_derivative(*args, **kwargs):
    raise NotImplementedError(
        "The fused recurrence has first derivatives only. For derivatives of "
        "its gradient, build the layer with `fused=False`."
    )

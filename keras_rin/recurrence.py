"""The fused recurrence h_t = phi(x_t W + b + h_{t-1} + h_{t-1} U).

`_forward` is this formula and `_backward` its adjoint. Both go through the
sequence in pieces, and through a piece in time steps. The inputs of a piece are
projected at once, and the gradients of W, b and U are products over a piece:
a time step is one matrix product and the activation, in either direction, and
only the hidden states of all steps are kept in memory. To add a kernel for a
device, replace `identity_recurrence`.
"""

import functools
from operator import methodcaller

import keras
from keras import ops

BACKENDS = ("tensorflow", "jax", "torch")

# A sequence has at most so many pieces, each of at least so many steps.
MOST_PIECES, FEWEST_STEPS = 16, 16

# Time steps in one iteration of a loop on a GPU, where the counter and the
# write into the stored states are kernels of their own. CPUs gain nothing.
STEPS_ON_GPU = 8


def _where(condition, one, other):
    # `keras.ops.where` takes longer in Torch than the product of a step.
    if keras.backend.backend() == "torch":
        return one.where(condition, other)
    return ops.where(condition, one, other)


def _leaky(g):
    # The slope of Keras, which TensorFlow rounds to float32.
    return g * -keras.activations.leaky_relu(-ops.ones((), g.dtype))


# dL/da from g = dL/dh, where h = phi(a), as a function of h alone.
PULLBACKS = {
    keras.activations.linear: lambda g, h: g,
    keras.activations.relu: lambda g, h: _where(h > 0, g, 0.0),
    keras.activations.leaky_relu: lambda g, h: _where(h > 0, g, _leaky(g)),
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
    run, phi = _on_backend(activation, x, compiled)
    count = _pieces(x.shape[1])

    @ops.custom_gradient
    def recurrence(*inputs):
        # Otherwise, eager TensorFlow would also differentiate the loop.
        fixed = tuple(map(ops.stop_gradient, inputs))
        states = run(_forward)(phi, count, fixed, mask)

        def pull_back(*args, upstream=None):
            # Torch passes `inputs` and `upstream`, other backends `upstream`.
            upstream = args[0] if upstream is None else upstream
            g = ops.stop_gradient(upstream)
            dz, *others = run(_backward)(activation, fixed, mask, states, g)
            if not _widens(kernel):
                # Not by `kernel` itself, which JAX has traced outside.
                dz = _times(dz, ops.transpose(fixed[1]))
            gradients = _whole(dz), *others
            return tuple(_once(g, upstream, *inputs) for g in gradients)

        return _whole(states) if return_sequences else states[-1, -1], pull_back

    # Copies, because custom gradients of TensorFlow take no variables.
    return recurrence(*map(ops.copy, (x, kernel, bias, initial_state, offset)))


def _forward(phi, count, inputs, mask):
    """The hidden states, `(pieces, steps, batch, units)`."""
    x, kernel, bias, initial_state, offset = inputs

    def piece(h, p):
        z = _times(_piece(x, count, p), kernel) + bias
        keep = None if mask is None else _piece(mask, count, p)[..., None]

        def step(h, t):
            new = phi(z[t] + h + h @ offset)
            h = new if mask is None else _where(keep[t], new, h)
            return h, h

        return _scan(step, h, ops.shape(z)[0], _steps_at_once())

    return _scan(piece, initial_state, count)[1]


def _backward(activation, inputs, mask, states, upstream):
    """The gradients of x or z (in pieces), W, b, h_0 and U.

    Of x and z, the one with fewer values is returned: that of x can be made
    from that of z, which TensorFlow leaves out where nobody asks for it.
    `upstream` is the gradient with respect to all hidden states
    `(batch, time, units)` or to the last one `(batch, units)`.
    """
    x, kernel, bias, initial_state, offset = inputs
    pull_back, transposed = PULLBACKS[activation], ops.transpose(offset)
    count, length, _, units = ops.shape(states)
    keep = None if mask is None else _kept(mask)

    def loss_of_state(t):
        """The gradient of the loss by h_t alone."""
        if len(upstream.shape) == 3:
            return upstream[:, t]
        return _at(t, count * length - 1, upstream)

    def before(g, t):
        """dL/dh_{t-1} from dL/da_t, or from dL/dh_t if t is masked."""
        moved = g + g @ transposed
        return moved if mask is None else _where(keep[t], moved, g)

    def piece(carry, p):
        g, d_weights = carry
        h = states[p]

        # The carry is not dL/dh_t, which XLA would compute twice.
        def step(g, i):
            t = p * length + i
            g = before(g, t + 1) + loss_of_state(t)
            pulled = pull_back(g, h[i])
            g = pulled if mask is None else _where(keep[t], pulled, g)
            return g, g

        g, dz = _scan(step, g, length, _steps_at_once(), reverse=True)
        if mask is not None:
            dz = _where(_piece(mask, count, p)[..., None], dz, 0.0)
        h = ops.concatenate([starts[p][None], h[:-1]])
        factors = h, _piece(x, count, p), ops.ones_like(h[..., :1])
        factors = ops.concatenate(factors, axis=-1)
        d_weights = d_weights + _summed_products(factors, dz)
        if _widens(kernel):
            dz = _times(dz, ops.transpose(kernel))
        return (g, d_weights), dz

    starts = ops.concatenate([initial_state[None], states[:-1, -1]])
    weights = ops.concatenate([offset, kernel, bias[None]])
    carry = ops.zeros_like(initial_state), ops.zeros_like(weights)
    (g, d_weights), d_x = _scan(piece, carry, count, reverse=True)
    d_kernel, d_bias = d_weights[units:-1], d_weights[-1]
    return d_x, d_kernel, d_bias, before(g, 0), d_weights[:units]


def _pieces(time):
    """The number of equal pieces that a sequence is divided into.

    The temporary arrays of a piece, z and dL/dz, are then small compared with
    the hidden states, which are kept for all steps.
    """
    known = isinstance(time, int)  # it can be undefined during tracing
    wanted = min(MOST_PIECES, time // FEWEST_STEPS) if known else 1
    return next((n for n in range(wanted, 1, -1) if time % n == 0), 1)


def _piece(sequence, count, p):
    """Piece p of a sequence `(batch, time, ...)`, time axis first."""
    batch, time, *rest = ops.shape(sequence)
    pieces = ops.reshape(sequence, (batch, count, time // count, *rest))
    return ops.swapaxes(pieces[:, p], 0, 1)


def _whole(pieces):
    """The sequence `(batch, time, ...)` of its pieces."""
    count, steps, *rest = ops.shape(pieces)
    return ops.swapaxes(ops.reshape(pieces, (count * steps, *rest)), 0, 1)


def _kept(mask):
    """A mask `(time + 1, batch, 1)`; after the last step, nothing is kept."""
    mask = ops.pad(ops.transpose(mask), ((0, 1), (0, 0)))
    return mask[..., None]


def _widens(kernel):
    """Whether there are more units than features."""
    return kernel.shape[0] < kernel.shape[1]


def _at(t, other, value):
    if isinstance(t, int):
        return value if t == other else 0.0
    return ops.where(t == other, value, 0.0)


def _times(sequence, matrix):
    """Multiplies all steps of a sequence by a matrix at once."""
    flat = ops.reshape(sequence, (-1, matrix.shape[0]))
    shape = (*ops.shape(sequence)[:-1], matrix.shape[1])
    return ops.reshape(flat @ matrix, shape)


def _summed_products(one, other):
    """The sum over time and batch of the outer products of two sequences."""
    one = ops.reshape(one, (-1, one.shape[-1]))
    return ops.transpose(one) @ ops.reshape(other, (-1, other.shape[-1]))


def _on_backend(activation, x, compiled):
    """How to run a pass, and the fastest form of the activation."""
    backend = keras.backend.backend()
    if backend == "tensorflow" and compiled and _shows_its_length(x):
        return _with_xla, IN_XLA.get(activation, activation)
    faster = {"jax": IN_XLA, "torch": IN_TORCH}.get(backend, {})
    return (lambda loop: loop), faster.get(activation, activation)


def _shows_its_length(x):
    """Whether compiling pays: XLA compiles each length separately."""
    import tensorflow as tf

    return not tf.executing_eagerly() and x.shape[1] is not None


@functools.cache
def _with_xla(loop):
    import tensorflow as tf

    return tf.function(loop, jit_compile=True, autograph=False)


def _steps_at_once():
    if keras.backend.backend() != "jax":
        return 1
    import jax

    return STEPS_ON_GPU if jax.default_backend() == "gpu" else 1


def _scan(step, carry, length, unroll=1, reverse=False):
    """`carry, output = step(carry, t)` for all t; returns carry and outputs."""
    if keras.backend.backend() == "tensorflow":
        return _tensorflow_scan(step, carry, length, reverse)
    if keras.backend.backend() == "torch":
        return _torch_scan(step, carry, length, reverse)
    steps = ops.arange(length)
    return ops.scan(step, carry, steps, reverse=reverse, unroll=unroll)


def _torch_scan(step, carry, length, reverse):
    outputs = None
    for t in reversed(range(length)) if reverse else range(length):
        carry, output = step(carry, t)
        if outputs is None:
            outputs = output.new_empty((length, *output.shape))
        outputs[t] = output
    return carry, outputs


def _tensorflow_scan(step, carry, length, reverse):
    """Sets no `maximum_iterations`, so that XLA finds the trip count."""
    import tensorflow as tf

    def body(i, carry, outputs):
        t = length - 1 - i if reverse else i
        carry, output = step(carry, t)
        return i + 1, carry, outputs.write(t, output)

    outputs = tf.TensorArray(tf.nest.flatten(carry)[0].dtype, length)
    loop = 0, carry, outputs
    _, carry, outputs = tf.while_loop(lambda i, *_: i < length, body, loop)
    return carry, outputs.stack()


@ops.custom_gradient
def _once(gradient, *made_of):
    """The gradient, which raises an error if it is differentiated."""
    return gradient, _no_second_derivative


def _no_second_derivative(*args, **kwargs):
    raise NotImplementedError(
        "The fused recurrence supports first derivatives by backpropagation "
        "only. For second derivatives and forward-mode differentiation, create "
        "the layer with `fused=False`."
    )

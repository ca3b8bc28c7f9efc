"""Operations of a backend that the fused recurrence needs."""

import functools
from typing import Any

import keras
from keras import ops

# JAX unrolls so many time steps into one iteration of a loop on a GPU, where
# the counter and the write into the stored states are kernels of their own.
# CPUs gain nothing.
UNROLL_ON_GPU = 8

FIRST_DERIVATIVE_ONLY = (
    "The fused recurrence supports first derivatives by backpropagation only. "
    "For second derivatives and forward-mode differentiation, create the "
    "layer with `fused=False`."
)


def where(condition, if_true, if_false):
    """`keras.ops.where`, which in Torch takes longer than a time step."""
    if keras.backend.backend() == "torch":
        return if_true.where(condition, if_false)
    return ops.where(condition, if_true, if_false)


# The functions in which Keras traces its training, evaluation and prediction.
# One that is missing here costs time; an export must not be among them.
STEPS_OF_KERAS = (
    "multi_step_on_iterator",
    "multi_step_on_data",
    "one_step_on_data",
    "one_step_on_data_distributed",
)


def keras_predicts(*inputs):
    """Whether Keras traces a step without a gradient that XLA can compile.

    An export has to trace plain operations, which every exporter supports.
    """
    if keras.backend.backend() != "tensorflow" or not _can_compile():
        return False
    return _outermost_function() in STEPS_OF_KERAS and (
        not _is_differentiated(inputs[:5])
    )


def pays_to_compile(inputs):
    """Whether XLA runs and saves time where TensorFlow is tracing.

    It compiles each number of time steps separately.
    """
    if keras.backend.backend() != "tensorflow" or not _can_compile():
        return False
    return inputs[0].shape[1] is not None and _is_differentiated(inputs[:5])


def _can_compile():
    """Whether XLA can compile what is traced."""
    import tensorflow as tf

    return not (tf.executing_eagerly() or _is_instrumented())


def _outermost_function():
    """The name of the function that TensorFlow is tracing."""
    import tensorflow as tf

    name, graph = None, tf.compat.v1.get_default_graph()
    while hasattr(graph, "outer_graph"):
        name, graph = graph.name, graph.outer_graph
    return name


def _is_differentiated(tensors):
    """Whether a tape records the operations that are traced.

    Under a second tape, TensorFlow prepares for a second derivative, and a
    call returns the values that this needs as well.
    """
    import tensorflow as tf

    @tf.function(autograph=False)
    def probe(*tensors):
        return [tf.sin(tensor[:0]) for tensor in tensors]

    with tf.GradientTape() as tape:
        tape.watch(tensors)
        outputs = probe(*tensors)
    return len(outputs[0].op.outputs) > len(outputs)


def _is_instrumented():
    """Whether a debugger adds operations, which XLA does not know."""
    import tensorflow as tf

    graph = tf.constant(0.0).graph
    before = len(graph.get_operations())
    tf.constant(0.0)
    return len(graph.get_operations()) > before + 1


@functools.cache
def with_xla(loop):
    """The loop as a function that TensorFlow compiles with XLA."""
    import tensorflow as tf

    return tf.function(loop, jit_compile=True, autograph=False)


def default_unroll():
    """The number of time steps in an iteration of the inner loop."""
    if keras.backend.backend() != "jax":
        return 1
    import jax

    return UNROLL_ON_GPU if jax.default_backend() == "gpu" else 1


def scan(step, carry, length, reverse=False, unroll=1, outputs=None):
    """`carry, output = step(carry, t)` for all t; returns carry and outputs.

    An output is a tensor or, with `outputs`, a tuple of so many.
    """
    if keras.backend.backend() == "tensorflow":
        return _tensorflow_scan(step, carry, length, reverse, outputs)
    if keras.backend.backend() == "torch":
        return _torch_scan(step, carry, length, reverse)
    if length == 1:  # without a loop
        carry, output = step(carry, 0)
        return carry, keras.tree.map_structure(lambda a: a[None], output)
    steps = ops.arange(length)
    return ops.scan(step, carry, steps, reverse=reverse, unroll=unroll)


def _torch_scan(step, carry, length, reverse):
    arrays: Any = None
    for t in reversed(range(length)) if reverse else range(length):
        carry, output = step(carry, t)
        if arrays is None:
            arrays = keras.tree.map_structure(
                lambda value: value.new_empty((length, *value.shape)), output
            )
        pairs = zip(*map(keras.tree.flatten, (arrays, output)), strict=True)
        for array, value in pairs:
            array[t] = value
    return carry, arrays


def _tensorflow_scan(step, carry, length, reverse, outputs):
    """Sets no `maximum_iterations`, so that XLA finds the trip count."""
    import tensorflow as tf

    def body(i, carry, arrays):
        t = length - 1 - i if reverse else i
        carry, output = step(carry, t)
        output = output if outputs else (output,)
        pairs = zip(arrays, output, strict=True)
        return i + 1, carry, tuple(array.write(t, o) for array, o in pairs)

    dtype = tf.nest.flatten(carry)[0].dtype
    arrays = tuple(tf.TensorArray(dtype, length) for _ in range(outputs or 1))
    loop = 0, carry, arrays
    _, carry, arrays = tf.while_loop(lambda i, *_: i < length, body, loop)
    stacked = tuple(array.stack() for array in arrays)
    return carry, stacked if outputs else stacked[0]


def differentiable(function):
    """A function of tensors with a gradient of its own.

    `function` returns a tuple of outputs, and a function from the gradients
    with respect to these, a tuple, to those with respect to the tensors.
    """
    if keras.backend.backend() == "torch":
        return _torch_differentiable(function)

    @ops.custom_gradient
    def with_gradient(*tensors):
        outputs, pull_back = function(*tensors)

        def gradients(*upstream):
            # JAX passes one tuple.
            is_nested = isinstance(upstream[0], tuple)
            return pull_back(upstream[0] if is_nested else upstream)

        return outputs, gradients

    return with_gradient


def _torch_differentiable(function):
    """That of Keras has functions of one output."""
    import torch

    class WithGradient(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *tensors):
            outputs, ctx.pull_back = function(*tensors)
            return outputs

        @staticmethod
        def backward(ctx, *upstream):
            return tuple(ctx.pull_back(upstream))

    return WithGradient.apply


def runs_cudnn(x):
    """Whether cuDNN runs the loops of Torch on a sequence."""
    if keras.backend.backend() != "torch" or not (x.is_cuda and x.numel()):
        return False
    # The sum U + I loses U in half precision.
    return keras.backend.standardize_dtype(x.dtype) in ("float32", "float64")


def run_rnn_of_torch(name, operands, return_sequences):
    """The hidden states, or the last one, of an Elman network, V = U + I."""
    x, kernel, bias, initial_state, offset = operands
    import torch

    identity = torch.eye(len(offset), dtype=x.dtype, device=x.device)
    weights = kernel.T, (offset + identity).T, bias, torch.zeros_like(bias)
    states, last = getattr(torch, name)(
        x,
        initial_state[None],
        weights,
        has_biases=True,
        num_layers=1,
        dropout=0.0,
        train=torch.is_grad_enabled(),
        bidirectional=False,
        batch_first=True,
    )
    return states if return_sequences else last[0]


def with_known_features(layer, x):
    """The input, with the size that its layer knows and a pipeline does not."""
    ((axis, size),) = layer.input_spec.axes.items()
    if x.shape[axis] is not None:
        return x
    shape = list(ops.shape(x))
    shape[axis] = size
    return ops.reshape(x, shape)


def require_batch_size(layer, sequences):
    """The sequences, as many as a stateful layer has states."""
    size = keras.tree.flatten(layer.states)[0].shape[0]
    message = f"{layer.name} is stateful with a batch size of {size}. Received:"
    received = sequences.shape[0]
    if isinstance(received, int) and received != size:
        raise ValueError(f"{message} a batch size of {received}")
    if received is not None:
        return sequences
    import tensorflow as tf

    # TensorFlow would broadcast a batch of one sequence, such as the last one
    # of an epoch. XLA drops assertions, but not the size of a reshape.
    received, *others = tf.unstack(tf.shape(sequences))
    check = tf.debugging.Assert(received == size, [message, received])
    with tf.control_dependencies([check]):
        checked = tf.reshape(sequences, (size, *others), "stateful_batch_size")
    checked.set_shape((size, *sequences.shape[1:]))
    return checked


def first_derivative_only(gradient, *dependencies):
    """The gradient, which raises an error if it is differentiated."""
    if keras.backend.backend() != "tensorflow":
        return _raise_if_differentiated(gradient, *dependencies)
    import tensorflow as tf

    # TensorFlow traces the gradient of a custom gradient when it saves a
    # train step, and looks this one up only to differentiate it.
    gradient, *_ = tf.identity_n([gradient, *dependencies])
    return tf.raw_ops.PreventGradient(
        input=gradient, message=FIRST_DERIVATIVE_ONLY
    )


@ops.custom_gradient
def _raise_if_differentiated(gradient, *dependencies):
    def pull_back(*args, **kwargs):
        raise NotImplementedError(FIRST_DERIVATIVE_ONLY)

    return gradient, pull_back


def without_forward_mode(recurrence):
    """The recurrence, with a reason in the error that JAX raises."""
    if keras.backend.backend() != "jax":
        return recurrence

    def with_reason(*inputs):
        try:
            return recurrence(*inputs)
        except TypeError as error:
            if "forward-mode" not in str(error):
                raise
            raise NotImplementedError(FIRST_DERIVATIVE_ONLY) from error

    return with_reason

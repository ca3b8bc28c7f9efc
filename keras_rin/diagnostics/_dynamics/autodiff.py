"""Derivatives, compilation and float64, which `keras.ops` does not offer."""

import contextlib

import keras
from keras import ops


def value_and_gradients(function, points):
    """The value of a function of a list of tensors, and its gradients.

    A tensor that the function does not use has the gradient 0. TensorFlow makes
    a graph, in which a loop over many steps takes a tenth of the time.
    """
    backend = keras.backend.backend()
    if backend == "jax":
        import jax

        return jax.value_and_grad(function)(points)
    if backend == "torch":
        import torch

        with torch.enable_grad():
            points = [point.detach().requires_grad_() for point in points]
            value = function(points)
            gradients = torch.autograd.grad(
                value, points, allow_unused=True, materialize_grads=True
            )
        return value.detach(), gradients
    import tensorflow as tf

    @tf.function(autograph=False)
    def graph(points):
        with tf.GradientTape() as tape:
            tape.watch(points)
            value = function(points)
        zero = tf.UnconnectedGradients.ZERO
        gradients = tape.gradient(value, points, unconnected_gradients=zero)
        return value, [tf.convert_to_tensor(slices) for slices in gradients]

    # TensorFlow warns of too many functions unless a graph is called.
    return graph.get_concrete_function(points)(points)


def directional(function, point, direction):
    """The value of a function at a point, and its derivative J d."""
    backend = keras.backend.backend()
    if backend == "jax":
        import jax

        return jax.jvp(function, (point,), (direction,))
    if backend == "torch":
        import torch

        return torch.func.jvp(function, (point,), (direction,))
    import tensorflow as tf

    with tf.autodiff.ForwardAccumulator(point, direction) as accumulator:
        value = function(point)
    derivative = accumulator.jvp(value, tf.UnconnectedGradients.ZERO)
    return value, derivative


def jacobians(function, points, inputs):
    """The Jacobian of each row, J_ij = d f_i / d p_j, `(rows, size, size)`.

    Each row of f(points, inputs) depends on the rows of the same index alone.
    """
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch(points)
            values = function(points, inputs)
        return tape.batch_jacobian(values, points)

    def row_function(point, row_inputs):
        return function(point[None], row_inputs[None])[0]

    if backend == "jax":
        import jax

        return jax.vmap(jax.jacrev(row_function))(points, inputs)
    import torch

    return torch.func.vmap(torch.func.jacrev(row_function))(points, inputs)


def compiled(function, shapes, dtype):
    """A function of arrays, whose shapes have `None` as their first axis."""
    backend = keras.backend.backend()
    if backend == "jax":
        import jax

        function = jax.jit(function)
    if backend == "tensorflow":
        import tensorflow as tf

        # TensorFlow warns of too many functions unless a graph is called.
        signature = [tf.TensorSpec(shape, dtype) for shape in shapes]
        graph = tf.function(function, autograph=False)
        function = graph.get_concrete_function(*signature)

    def call_with_arrays(*arrays):
        tensors = [ops.convert_to_tensor(array, dtype) for array in arrays]
        return keras.tree.map_structure(
            ops.convert_to_numpy, function(*tensors)
        )

    return call_with_arrays


def float64_allowed(dtype="float64"):
    """A context in which the backend computes in float64 if `dtype` is that."""
    backend = keras.backend.backend()
    if backend == "jax":
        import jax

        if hasattr(jax, "enable_x64"):
            return jax.enable_x64(True)
        from jax import experimental  # older JAX

        return experimental.enable_x64(True)
    if backend == "torch" and dtype == "float64":
        return _torch_float64_mode()
    return contextlib.nullcontext()


def _torch_float64_mode():
    """Undoes the cast to float32 of Keras 3.15 before a matrix product."""
    import torch

    class PreserveFloat64(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            if function is torch.Tensor.to and torch.float32 in args:
                if args[0].dtype == torch.float64:
                    return args[0]
            return function(*args, **(kwargs or {}))

    return PreserveFloat64()


def exact_activation(function):
    """The activation; `tanh` of Keras on JAX would compute in float32."""
    if keras.backend.backend() == "jax" and function is keras.activations.tanh:
        import jax

        return jax.numpy.tanh
    return function

"""Gradients, as each backend computes them."""

import keras

BACKEND = keras.backend.backend()


def outputs_and_gradients(function, arguments, compiled=False):
    """The outputs of a function that returns a loss and these, and gradients.

    They are those of the loss by all arguments. JAX compiles in any case.
    """
    if BACKEND == "tensorflow":
        import tensorflow as tf

        def by_tape(*arguments):
            with tf.GradientTape() as tape:
                tape.watch(arguments)
                loss, outputs = function(*arguments)
            return outputs, tape.gradient(loss, arguments)

        by_tape = tf.function(by_tape, autograph=False) if compiled else by_tape
        return by_tape(*arguments)
    if BACKEND == "jax":
        import jax

        both = jax.value_and_grad(function, range(len(arguments)), has_aux=True)
        (_, outputs), gradients = jax.jit(both)(*arguments)
        return outputs, gradients
    leaves = [tensor.detach().requires_grad_() for tensor in arguments]
    loss, outputs = function(*leaves)
    loss.backward()
    return outputs, [leaf.grad for leaf in leaves]

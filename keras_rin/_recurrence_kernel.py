"""The loop over the time steps as one kernel of a GPU, for JAX on CUDA.

XLA starts two kernels at every step of a sequence. Here one program keeps the
hidden states of `TILE` sequences and the recurrent matrix on the chip for all
steps. Pallas compiles it with Triton.
"""

import os

import keras
from keras import ops

# The environment variable that switches the kernel on: "1" where a computation
# is compiled for CUDA, "interpret" on every platform, for tests.
SWITCH = "KERAS_RIN_GPU_KERNEL"

ACTIVATIONS = ("linear", "relu", "tanh")
# The most units whose recurrent matrix fits on the chip.
MOST_UNITS = {"float32": 128, "bfloat16": 256}
# Triton multiplies matrices whose sizes are powers of two from 16 on, and
# addresses an array with 32 bits.
TILE, MOST_ELEMENTS = 16, 2**31 - 1


def uses_kernel(activation, x, offset):
    """Whether the kernel is switched on and supports the layer."""
    if keras.backend.backend() != "jax" or not os.environ.get(SWITCH):
        return False
    (batch, time, _), units = x.shape, offset.shape[1]
    dtype = keras.backend.standardize_dtype(x.dtype)
    return (
        activation in [getattr(keras.activations, n) for n in ACTIVATIONS]
        and units <= MOST_UNITS.get(dtype, 0)
        and all(isinstance(size, int) and size for size in (batch, time))
        and (batch + TILE) * time * _width(units) <= MOST_ELEMENTS
    )


def run_in_kernel(
    run_steps, make_step, carry, matrix, sequences, batch_axes, reverse=False
):
    """The same as `run_steps`, in a kernel if it is compiled for CUDA.

    `batch_axes` are the batch axes of `sequences`, of which the first one has
    the shape `(time, batch, units)`.
    """
    import jax

    def run_loop(carry, matrix, *sequences):
        return run_steps(
            make_step, carry, matrix, sequences, batch_axes, reverse
        )

    def run_kernel(*operands, interpret=False):
        return _call_kernel(make_step, operands, batch_axes, reverse, interpret)

    operands = carry, matrix, *sequences
    if os.environ[SWITCH] == "interpret":
        return run_kernel(*operands, interpret=True)
    return jax.lax.platform_dependent(
        *operands, cuda=run_kernel, default=run_loop
    )


def _call_kernel(make_step, operands, batch_axes, reverse, interpret):
    import jax
    from jax.experimental import pallas
    from jax.experimental.pallas import triton

    carry, matrix, *sequences = operands
    steps, batch, units = sequences[0].shape
    width = _width(units)
    matrix = ops.pad(matrix, [(0, width - units)] * 2)
    pairs = zip((carry, *sequences), (0, *batch_axes), strict=False)
    arrays, tiles = zip(*[_cut_tiles(*p, units) for p in pairs], strict=True)

    def kernel(matrix_ref, carry_ref, *refs):
        *sequence_refs, last_ref, states_ref = refs
        matrix = matrix_ref[...]

        def multiply(h):
            h = h.astype(matrix.dtype)
            return jax.lax.dot(h, matrix, preferred_element_type="float32")

        # A matrix is read once, and a step of a sequence when it is needed.
        sequences = [r[...] if r.ndim == 2 else r for r in sequence_refs]
        step = make_step(multiply, *sequences)

        def body(i, carry):
            t = steps - 1 - i if reverse else i
            carry, output = step(carry, t)
            states_ref[t] = output.astype(states_ref.dtype)
            return carry

        carry = carry_ref[...].astype("float32")
        last = jax.lax.fori_loop(0, steps, body, carry)
        last_ref[...] = last.astype(last_ref.dtype)

    last, states = pallas.pallas_call(
        kernel,
        grid=(arrays[0].shape[0] // TILE,),
        in_specs=[pallas.BlockSpec(matrix.shape, lambda i: (0, 0)), *tiles],
        out_specs=tiles[:2],
        out_shape=[jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays[:2]],
        compiler_params=triton.CompilerParams(
            num_warps=4 if width <= 64 else 8, num_stages=1
        ),
        interpret=interpret,
    )(matrix, *arrays)
    return last[:batch, :units], states[:, :batch, :units]


def _width(units):
    return max(TILE, 1 << (units - 1).bit_length())


def _cut_tiles(array, batch_axis, units):
    """The array, padded to whole tiles, and the tile of program i."""
    from jax.experimental import pallas

    padding, shape = [(0, 0)] * array.ndim, list(array.shape)
    padding[batch_axis] = (0, -shape[batch_axis] % TILE)
    if shape[-1] == units:  # A mask has one column.
        padding[-1] = (0, _width(units) - units)
    array, axes = ops.pad(array, padding), range(array.ndim)
    shape = [TILE if k == batch_axis else array.shape[k] for k in axes]
    return array, pallas.BlockSpec(
        tuple(shape), lambda i: tuple(i if k == batch_axis else 0 for k in axes)
    )

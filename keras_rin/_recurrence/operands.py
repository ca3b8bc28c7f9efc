"""The tensors of a fused recurrence, and the pieces of their sequences."""

from typing import Any
from typing import NamedTuple

from keras import ops

from keras_rin._recurrence.backends import default_unroll
from keras_rin._recurrence.backends import scan


class Operands(NamedTuple):
    """The tensors of a recurrence, in the order of their gradients."""

    # (batch, time, features); (batch, pieces, steps, features) of all pieces,
    # (steps, batch, features) of one
    x: Any
    kernel: Any  # W (features, inner units)
    bias: Any  # b (inner units,)
    initial_state: Any  # h_0 (batch, units)
    recurrent_kernel: Any  # U (units, inner units)
    output_kernel: Any = None  # V (inner units, units)
    mask: Any = None  # as x without features; it has no gradient

    def tensors(self):
        return [tensor for tensor in self if tensor is not None]

    def replaced(self, tensors):
        """These operands with other tensors in place of those there are."""
        values = self._asdict().items()
        names = [name for name, tensor in values if tensor is not None]
        return self._replace(**dict(zip(names, tensors, strict=True)))

    def argument(self, z, h):
        """a_t of z = x_t W + b and of the state before."""
        if self.output_kernel is None:
            return z + h + h @ self.recurrent_kernel
        return z + h @ self.recurrent_kernel


def padded(operands, missing):
    """The operands, of one batch size, with `missing` masked steps at the end.

    Unless it is `None`.
    """
    x, mask = operands.x, operands.mask
    batch, time, _ = ops.shape(x)
    if missing is not None:
        mask = ops.ones((batch, time), "bool") if mask is None else mask
        x = ops.pad(x, ((0, 0), (0, missing), (0, 0)))
        mask = ops.pad(mask, ((0, 0), (0, missing)))
    # TensorFlow may know the batch size of one tensor and not of another, and
    # its loops refuse a carry that loses it. Hence every `ops.reshape` here.
    units = operands.recurrent_kernel.shape[0]
    if mask is not None:
        mask = ops.reshape(mask, (batch, ops.shape(x)[1]))
    initial_state = ops.reshape(operands.initial_state, (batch, units))
    return operands._replace(x=x, initial_state=initial_state, mask=mask)


def in_pieces(operands, pieces):
    """The operands, with x and the mask in pieces of equal length.

    In a graph TensorFlow would join this reshape with one that checks a batch
    size, so it is a part of the loops.
    """
    batch, time, features = ops.shape(operands.x)
    cut, mask = (batch, pieces, time // pieces), operands.mask
    return operands._replace(
        x=ops.reshape(operands.x, (*cut, features)),
        mask=None if mask is None else ops.reshape(mask, cut),
    )


def cut_piece(operands, p):
    """The operands, with x and the mask of piece p, time axis first."""
    x, mask = operands.x, operands.mask
    return operands._replace(
        x=ops.swapaxes(x[:, p], 0, 1),
        mask=None if mask is None else ops.swapaxes(mask[:, p], 0, 1),
    )


def projected(piece):
    """z = x W + b of a piece, `(steps, batch, inner units)`."""
    return project(piece.x, piece.kernel) + piece.bias


def unmasked_steps(piece) -> Any:
    """Where a piece is not masked, `(steps, batch, 1)`, or `None`."""
    return None if piece.mask is None else piece.mask[..., None]


def join_pieces(pieces):
    """The sequence `(batch, time, ...)` of its pieces, time axis first."""
    count, steps, *rest = ops.shape(pieces)
    return ops.swapaxes(ops.reshape(pieces, (count * steps, *rest)), 0, 1)


def project(sequence, matrix):
    """Multiplies all steps of a sequence by a matrix at once."""
    flat = ops.reshape(sequence, (-1, matrix.shape[0]))
    shape = (*ops.shape(sequence)[:-1], matrix.shape[1])
    return ops.reshape(flat @ matrix, shape)


def sum_of_products(left, right):
    """The sum over time and batch of the outer products of two sequences."""
    left = ops.reshape(left, (-1, left.shape[-1]))
    return ops.transpose(left) @ ops.reshape(right, (-1, right.shape[-1]))


def has_more_units_than_features(kernel):
    return kernel.shape[0] < kernel.shape[1]


def scan_steps(step, carry, steps, **options):
    return scan(step, carry, steps, unroll=default_unroll(), **options)

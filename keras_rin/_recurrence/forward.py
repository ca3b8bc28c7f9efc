"""The hidden states of a fused recurrence, piece by piece."""

from keras import ops

from keras_rin._recurrence.backends import scan
from keras_rin._recurrence.backends import where
from keras_rin._recurrence.operands import cut_piece
from keras_rin._recurrence.operands import in_pieces
from keras_rin._recurrence.operands import projected
from keras_rin._recurrence.operands import scan_steps
from keras_rin._recurrence.operands import unmasked_steps


def run_piece(phi, piece, carry, margin=None):
    """The last state of a piece and the activity, and all its states."""
    z = projected(piece)
    output_kernel = piece.output_kernel
    unmasked = unmasked_steps(piece)
    has_mask = unmasked is not None

    def step(carry, i):
        h, *activity = carry
        a = piece.argument(z[i], h)
        new_h = phi(a)
        if output_kernel is not None:
            new_h = h + new_h @ output_kernel
        if margin is not None:
            near = ops.cast(ops.relu(a + margin), "float32")
            near = where(unmasked[i], near, 0.0) if has_mask else near
            activity = [activity[0] + ops.sum(near, axis=-1)]
        h = where(unmasked[i], new_h, h) if has_mask else new_h
        return (h, *activity), h

    return scan_steps(step, carry, ops.shape(z)[0])


def forward(phi, pieces, operands, margin, stores_all, run=run_piece):
    """The hidden states, `(pieces, steps, batch, units)`, and the activity.

    Without `stores_all` the last ones of the pieces, `(pieces, batch, units)`,
    without a margin no activity. `run` is `run_piece`, if it is compiled alone.
    """
    operands = in_pieces(operands, pieces)

    def next_piece(carry, p):
        carry, states = run(phi, cut_piece(operands, p), carry, margin)
        return carry, states if stores_all else carry[0]

    batch = ops.shape(operands.x)[0]
    carry: tuple = (operands.initial_state,)
    if margin is not None:
        carry += (ops.zeros((batch,), "float32"),)
    (_, *activity), states = scan(next_piece, carry, pieces)
    return states, *activity

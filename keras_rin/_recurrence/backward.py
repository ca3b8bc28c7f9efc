"""The gradients of a fused recurrence, piece by piece."""

from keras import ops

from keras_rin._recurrence.activations import PULLBACKS
from keras_rin._recurrence.backends import scan
from keras_rin._recurrence.backends import where
from keras_rin._recurrence.forward import run_piece
from keras_rin._recurrence.operands import cut_piece
from keras_rin._recurrence.operands import has_more_units_than_features
from keras_rin._recurrence.operands import in_pieces
from keras_rin._recurrence.operands import project
from keras_rin._recurrence.operands import projected
from keras_rin._recurrence.operands import scan_steps
from keras_rin._recurrence.operands import sum_of_products
from keras_rin._recurrence.operands import unmasked_steps


class _Adjoint:
    """The adjoint of a step, h_t = phi(a_t) with h_{t-1} in a_t.

    The carry of a time step has dL/da_t, 0 where t is masked, and what the
    identity carries from h_t to h_{t-1}. They are one without a mask: XLA would
    compute dL/dh_t twice if it were the carry of every step.
    """

    def __init__(self, operands, activation, margin, d_activity):
        self.operands, self.activation = operands, activation
        self.pull_back, self.margin = PULLBACKS[activation], margin
        self.recurrent_transposed = ops.transpose(operands.recurrent_kernel)
        self.has_mask = operands.mask is not None
        if margin is not None:
            d_activity = ops.cast(d_activity, operands.x.dtype)[:, None]
        self.d_activity = d_activity

    def first_carry(self):
        identity = ops.zeros_like(self.operands.initial_state)
        return (identity, identity) if self.has_mask else (identity,)

    def through_step(self, carry):
        """dL/dh_{t-1} without what step t - 1 puts out."""
        return carry[0] + carry[-1] @ self.recurrent_transposed

    def inner(self, h, previous, piece):
        """u = phi(a) and, where it is needed, a, of all steps of a piece."""
        return h, None

    def step(self, d_h, u, a, unmasked):
        """The carry, and what a step has for the gradients of weights."""
        d_a = self.pull_back(d_h, u)
        if not self.has_mask:
            return (d_a,), (d_a,)
        identity, d_a = where(unmasked, d_a, d_h), where(unmasked, d_a, 0.0)
        return (identity, d_a), (d_a,)

    def output_gradients(self, u, unmasked, outputs):
        """Those of V in a piece, here none."""
        return []


class _ResidualAdjoint(_Adjoint):
    """That of h_t = h_{t-1} + phi(a_t) V, without h_{t-1} itself in a_t."""

    def __init__(self, operands, *arguments):
        super().__init__(operands, *arguments)
        self.output_transposed = ops.transpose(operands.output_kernel)

    def first_carry(self):
        identity = ops.zeros_like(self.operands.initial_state)
        inner_units = self.operands.output_kernel.shape[0]
        shape = ops.shape(identity)[0], inner_units
        return identity, ops.zeros(shape, identity.dtype)

    def inner(self, h, previous, piece):
        a = projected(piece) + project(previous, self.operands.recurrent_kernel)
        return self.activation(a), a

    def step(self, d_h, u, a, unmasked):
        d_a = self.pull_back(d_h @ self.output_transposed, u)
        if self.margin is not None:
            d_a = d_a + where(a > -self.margin, self.d_activity, 0.0)
        d_a = where(unmasked, d_a, 0.0) if self.has_mask else d_a
        return (d_h, d_a), (d_a, d_h)

    def output_gradients(self, u, unmasked, outputs):
        u = where(unmasked, u, 0.0) if self.has_mask else u
        return [sum_of_products(u, outputs[1])]


def _upstream_of_step(upstream, t, last):
    """The gradient of the loss by h_t alone."""
    if len(upstream.shape) == 3:
        return upstream[:, t]
    if isinstance(t, int):
        return upstream if t == last else 0.0
    return ops.where(t == last, upstream, 0.0)


def backward(
    activation, operands, margin, states, upstream, d_activity, phi=None
):
    """The gradients of x or z (in pieces), W, b, h_0, U and V.

    Of x and z = x W + b, the one with fewer values is returned: that of x can
    be made from that of z, which TensorFlow leaves out where nobody asks for
    it. `upstream` is the gradient with respect to all hidden states
    `(batch, time, units)` or to the last one `(batch, units)`, `d_activity`
    that with respect to the activity `(batch,)`. A step i of a piece is step t
    of the sequence. With `phi`, `states` are the last ones of the pieces, and
    the others are computed again.
    """
    pieces = ops.shape(states)[0]
    operands = in_pieces(operands, pieces)
    is_residual = operands.output_kernel is not None
    adjoint = (_ResidualAdjoint if is_residual else _Adjoint)(
        operands, activation, margin, d_activity
    )
    steps = ops.shape(operands.x)[2]
    last = pieces * steps - 1

    def run_piece_back(carry, p):
        carry, *d_weights = carry
        before, h, piece = states_before[p], states[p], cut_piece(operands, p)
        if phi:
            h = run_piece(phi, piece, (before,))[1]
        previous = ops.concatenate([before[None], h[:-1]])
        u, a = adjoint.inner(h, previous, piece)
        unmasked = unmasked_steps(piece)

        def step(carry, i):
            d_h = _upstream_of_step(upstream, p * steps + i, last)
            d_h = adjoint.through_step(carry) + d_h
            values = [v if v is None else v[i] for v in (u, a, unmasked)]
            return adjoint.step(d_h, *values)

        carry, outputs = scan_steps(
            *(step, carry, steps), reverse=True, outputs=1 + is_residual
        )
        d_a = outputs[0]
        ones = ops.ones_like(h[..., :1])
        factors = ops.concatenate([previous, piece.x, ones], -1)
        products = [sum_of_products(factors, d_a)]
        products += adjoint.output_gradients(u, unmasked, outputs)
        d_weights = [
            total + product
            for total, product in zip(d_weights, products, strict=True)
        ]
        if has_more_units_than_features(operands.kernel):
            d_a = project(d_a, ops.transpose(operands.kernel))
        return (carry, *d_weights), d_a

    initial_state = operands.initial_state
    states_before = ops.concatenate([initial_state[None], states[:-1, -1]])
    weights = [operands.recurrent_kernel, operands.kernel, operands.bias[None]]
    d_weights = [ops.zeros_like(ops.concatenate(weights))]
    d_weights += [ops.zeros_like(operands.output_kernel)] if is_residual else []
    (carry, d_weights, *d_output_kernel), d_x_or_z = scan(
        run_piece_back,
        (adjoint.first_carry(), *d_weights),
        pieces,
        reverse=True,
    )
    units = operands.recurrent_kernel.shape[0]
    return (
        d_x_or_z,
        d_weights[units:-1],
        d_weights[-1],
        adjoint.through_step(carry),
        d_weights[:units],
        *d_output_kernel,
    )

"""The dropout of a cell that carries its state by the identity."""


def apply_dropout(cell, x, h, training):
    """The inputs and the state as matrices read them, in training dropped.

    `cell` is a subclass of `keras.layers.SimpleRNNCell`, which has the masks.
    """
    x_dropout_mask = cell.get_dropout_mask(x)
    h_dropout_mask = cell.get_recurrent_dropout_mask(h)
    if training and x_dropout_mask is not None:
        x = x * x_dropout_mask
    if training and h_dropout_mask is not None:
        h = h * h_dropout_mask
    return x, h

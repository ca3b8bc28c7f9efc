"""Optimizers with per-weight learning rates."""

from keras_rin.optimizers._adam_with_multipliers import AdamWithMultipliers

__all__ = ["AdamWithMultipliers"]

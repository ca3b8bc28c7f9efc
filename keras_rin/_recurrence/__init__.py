"""The fused recurrences, of `RIN` and `ResidualRNN`."""

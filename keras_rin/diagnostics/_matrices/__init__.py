"""Measures of recurrent matrices."""

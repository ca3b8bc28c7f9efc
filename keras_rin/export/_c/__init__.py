"""A model as a C header, in floats or in integers."""

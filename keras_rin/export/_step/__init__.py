"""A model as a model of one time step."""

"""The layers of a model, what recurrent ones read, and their state."""

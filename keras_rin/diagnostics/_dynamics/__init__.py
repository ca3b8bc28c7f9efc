"""States of recurrent layers in time, and their derivatives."""

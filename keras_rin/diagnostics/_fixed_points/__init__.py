"""Fixed points, cycles and branches, and what is proved of them."""

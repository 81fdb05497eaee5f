"""A tape: the checks of its launches, and of its backward pass as a whole."""

"""Checks of a tape: its launches, and its backward pass as a whole."""

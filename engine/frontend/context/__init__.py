"""The state of lowering one function, and how the rooms reach each other."""

"""Functions of `@func` and related decorators as data, and their overloads."""

"""Lowers calls: builtins, the library, user functions, constructors, messages, atomics."""

"""Lowers statements: assignments, control flow, `return`, `assert`."""

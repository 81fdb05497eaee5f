"""Assignments to names, structs, parts of values and array elements."""

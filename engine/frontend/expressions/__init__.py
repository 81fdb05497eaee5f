"""Lowers names, arithmetic, conditions, subscripts and attributes."""

"""Compares adjoints with references: tolerances and verdicts."""

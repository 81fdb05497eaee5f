"""Accuracy over time: what was measured, kept in a file, and compared with what is measured now."""

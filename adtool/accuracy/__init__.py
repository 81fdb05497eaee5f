"""Accuracy over time: measurements are kept in a file and compared with later runs."""

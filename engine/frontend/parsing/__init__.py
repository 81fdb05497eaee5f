"""From the text of a Python function to a checked, simplified syntax tree and its names."""

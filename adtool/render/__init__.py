"""Output formats. The only package that imports rich."""

"""Adjoints that are wrong on purpose, to check the checks."""

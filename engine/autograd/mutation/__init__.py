"""Adjoints that are wrong on purpose, to test the checks."""

"""Captures: a recorded run in one file, which another machine can check.

The format is described in docs/captures.md.
"""

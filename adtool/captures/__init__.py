"""Captures: what a run recorded, in one file that another machine can check.

The format is described in docs/captures.md.
"""

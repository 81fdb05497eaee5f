"""Mechanical cures of findings: one file a kind. They are computed from the program's text alone.

A fix is a proposal: `search` keeps those alone that are seen to make their findings go away.
"""

"""Mechanical fixes of findings, one file a kind, computed from the program's text.

A fix is a proposal: `search` keeps those alone that are seen to make their findings go away.
"""

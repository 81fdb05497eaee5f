"""Derivatives of one Python function on the user's arrays, which are restored afterwards."""

"""Plots of Jacobians and of errors. matplotlib is imported when one is drawn."""

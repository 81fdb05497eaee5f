"""Plots and graphs. matplotlib and graphviz are imported when something is drawn."""

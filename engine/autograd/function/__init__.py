"""One Python function: run on the arrays of its user, which are put back afterwards."""

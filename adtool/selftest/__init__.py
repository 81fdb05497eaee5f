"""The check of the checker: right kernels must pass, wrong ones must be caught."""

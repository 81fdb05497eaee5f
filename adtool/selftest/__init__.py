"""Who checks the checker: right kernels that must pass, and wrong ones that must be caught."""

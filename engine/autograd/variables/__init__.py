"""The variables of a Jacobian: inputs and outputs in their roles, and the scalars of each."""

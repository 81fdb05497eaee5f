"""What a Jacobian is of: inputs and outputs in their roles, and the scalars of each."""

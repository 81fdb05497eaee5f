"""Jacobians as matrices: from adjoints or differences, entry by entry or compressed."""

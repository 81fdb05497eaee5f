"""Springs whose stiffness is fitted to measurements."""

"""One recorded launch: its evaluation on copies, and the check of its adjoint."""

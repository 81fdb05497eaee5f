"""One recorded launch: evaluated on copies, its adjoint compared and explained."""

"""Sources of others as material: what of them the engine takes, and how it compares."""

"""Programs that change something once launches are warm: see `test_warm_state`."""

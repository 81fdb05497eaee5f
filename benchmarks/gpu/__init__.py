"""The GPU: its tests and its rows in one go, `python -m benchmarks --device cuda --and-tests`."""

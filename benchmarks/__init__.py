"""Measures the speed of the engine beside its peers: `python -m benchmarks`.

Other measurements have modules of their own (`python -m benchmarks.cores`): see README.md.
"""

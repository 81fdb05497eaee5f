"""How fast the engine is, measured beside its peers: `python -m benchmarks`.

Other measurements have modules of their own (`python -m benchmarks.cores`): see README.md.
"""

"""A command-line gradient debugger for programs that run on `engine`.

PYTEST_DONT_REWRITE: it brings a plugin of pytest, which would else warn where it comes too late.
"""

__version__ = "0.1.0"

"""A command-line gradient debugger for programs that run on `engine`."""

__version__ = "0.1.0"

"""A value that does not fit a parameter, before the error names the parameter."""

from __future__ import annotations


class Mismatch(Exception):
    """A value does not fit a parameter: an error code, what was got, and a way out.

    wanted: what fits, where the type of the parameter does not say it best.
    """

    def __init__(self, code: str, got: str, help: str = "", wanted: str = "") -> None:
        self.wanted = wanted
        self.code = code
        self.got = got
        self.help = help

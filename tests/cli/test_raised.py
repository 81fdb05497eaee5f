"""Exceptions that no program should raise end in one error, which is the script's."""

from __future__ import annotations

from typing import Any

import pytest

_ODD = """
class Odd(Exception):
    def fails(self, *_):
        raise ZeroDivisionError
    __str__ = __repr__ = __len__ = __bool__ = __hash__ = __eq__ = __format__ = fails
    __cause__ = __context__ = __traceback__ = __notes__ = name = property(fails, fails)
class OddMissing(Odd, ModuleNotFoundError):
    pass
"""
_SCRIPTS = {
    "chain": "e = None\nfor n in range(1100):\n    try:\n        raise ValueError(n) from e\n"
    "    except ValueError as x:\n        e = x\nraise e\n",
    "long": "raise ValueError('x' * 10_000_000)\n",
    "recursion": "def f():\n    f()\nf()\n",
    "odd": _ODD + "raise Odd\n",
    "missing": _ODD + "raise OddMissing\n",
    "missing name": "raise ModuleNotFoundError('m', name=3)\n",
    "exit": _ODD + "raise SystemExit(Odd())\n",
    "long exit": "raise SystemExit('x' * 10_000_000)\n",
    "engine": "import engine\nraise engine.EngineError('not a diagnostic')\n",
    "engine without": "import engine\nclass E(engine.LaunchError):\n"
    "    def __init__(self): pass\nraise E\n",
    "os": "raise OSError(28, 'No space left on device', 'mine')\n",
    "syntax": "raise SyntaxError('m', ('f', 'three', b'x', [1]))\n",
}


@pytest.mark.parametrize("text", _SCRIPTS.values(), ids=_SCRIPTS)
def test_one_error_that_blames_the_script(adtool: Any, text: str) -> None:
    adtool.script(text)
    done = adtool("check", "script.py")
    said = done.stderr
    assert done.returncode == 2 and len(said) < 300_000, said[:2000]
    assert "bug in adtool" not in said and "internal" not in said, said[:2000]
    (error,) = [line for line in said.splitlines() if line.startswith("error: ")]
    assert error.startswith(("error: the script raised ", "error: the script ended by sys.exit("))
    assert "script.py:" in said

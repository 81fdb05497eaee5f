"""The checker of tests: it names tests that cannot fail, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proofs.reached import Proofs

HELPERS = """
import numpy as np
import pytest

def check_nothing(x): print(x)
def same(a, b): assert a == b
def near(a, b): np.testing.assert_allclose(a, b)
def launch(): assert True
def deep(n): return same(n, 1) if n else deep(n - 1)
def items(xs):
    for x in xs:
        assert x
        yield x
class Run:
    def check(self): self._all()
    def _all(self): assert self.x
    def verify(self): return self.x
class Longer(Run): pass
def made() -> Run: return Run()
def any_of(): return Longer()
@pytest.fixture
def compare(): return same
@pytest.fixture
def idle(): return check_nothing
@pytest.fixture
def run(): return Run()
@pytest.fixture
def watched():
    yield 1
    assert not errors
@pytest.fixture
def early():
    assert ready
    yield 1
"""
HEAD = """
import contextlib, subprocess
import numpy as np
import pytest
import engine as wp
from numpy.testing import assert_array_equal
from tests import helpers
from tests.helpers import (
    check_nothing, same, near, deep, items, Run, Longer, made, any_of,
    compare, idle, run, watched, early,
)
TABLE = {"a": lambda x: same(x, 1), "b": near}
MIXED = {"a": lambda x: same(x, 1), "b": check_nothing}
def status(code, *args): assert subprocess.run(args).returncode == code
def assert_nothing(): pass
"""

# Tests that cannot fail, or whose assertions need not be reached.
SILENT = {
    "a helper whose name promises": "def test_it(): check_nothing(1)",
    "a local helper whose name promises": "def test_it(): assert_nothing()",
    "a method whose name promises": "def test_it(): made().verify()",
    "another function of that name asserts": """
def test_it():
    def same(a, b): return a == b
    same(1, 2)""",
    "a nested launch": """
def test_it():
    def launch(): wp.launch(k, 1, [x])
    launch()""",
    "a launch of the engine": "def test_it(): wp.launch(k, 1, [x])",
    "a method of an unknown object": "def test_it(): wp.Tape().check()",
    "nothing": "def test_it(): pass",
    "only a first line": 'def test_it():\n    """Holds that nothing is raised."""\n    f()',
    "a nested function that nothing reaches": """
def test_it():
    def inner(): assert x == 1
    f()""",
    "an assertion that replaces something": """
def test_it(monkeypatch):
    monkeypatch.setattr(wp, "launch", same)
    wp.launch(1, 2)""",
    "a kernel's assertion": """
def test_it():
    @wp.kernel
    def k(x: A):
        assert x[0] == 1.0
    wp.launch(k, 1, [x])""",
    "True": "def test_it(): assert True",
    "a constant": "def test_it(): assert 1",
    "a text": "def test_it(): assert 'x == 1'",
    "a tuple": "def test_it(): assert (x == 1, 'x is one')",
    "a function": "def test_it(): assert lambda: x == 1",
    "or True": "def test_it(): assert x == 1 or True",
    "not False": "def test_it(): assert not False",
    "itself": "def test_it(): assert x.y == x.y",
    "a length": "def test_it(): assert len(x) >= 0",
    "an object": "def test_it(): assert isinstance(x, object)",
    "a helper with a constant": "def test_it(): helpers.launch()",
    "any exception": "def test_it():\n    with pytest.raises(Exception):\n        assert f() == 1",
    "any exception at all": "def test_it():\n    with pytest.raises((OSError, BaseException)): f()",
    "a suppressed failure": """
def test_it():
    with contextlib.suppress(Exception):
        assert f() == 1""",
    "a caught failure": """
def test_it():
    try:
        assert f() == 1
    except AssertionError:
        pass""",
    "after the end": "def test_it():\n    return\n    assert x == 1",
    "never": "def test_it():\n    if False:\n        assert x == 1",
    "no turn": "def test_it():\n    for x in ():\n        assert x == 1",
    "a generator that is not asked": "def test_it(): items([1])",
    "a status that is not looked at": "def test_it(): subprocess.run(['false'])",
    "a fixture that gives nothing that asserts": "def test_it(idle): idle(1)",
    "a fixture that only begins with an assertion": "def test_it(early): f(early)",
    "a table in which one asserts nothing": """
@pytest.mark.parametrize("name", MIXED)
def test_it(name): MIXED[name](1)""",
    "a parameter that asserts nothing": """
@pytest.mark.parametrize("of", [same, check_nothing])
def test_it(of): of(1, 2)""",
}
RIGHT = {
    "an assertion": "def test_it(): assert f() == 1",
    "in a loop": "def test_it():\n    for x in xs:\n        assert x",
    "False, where one must not come": "def test_it():\n    if x:\n        assert False",
    "a helper": "def test_it(): same(f(), 1)",
    "a helper of NumPy's": "def test_it(): near(f(), 1)",
    "a helper by its module": "def test_it(): helpers.same(f(), 1)",
    "a helper of this file": "def test_it(): status(0, 'true')",
    "helpers of helpers": "def test_it(): deep(3)",
    "NumPy": "def test_it(): np.testing.assert_allclose(f(), 1)",
    "NumPy by name": "def test_it(): assert_array_equal(f(), 1)",
    "raises": "def test_it():\n    with pytest.raises(ValueError): f()",
    "raises with a text": "def test_it():\n    with pytest.raises(Exception, match='x'): f()",
    "what any exception says": """
def test_it():
    with pytest.raises(Exception) as e: f()
    assert e.value.code == 1""",
    "warns": "def test_it():\n    with pytest.warns(UserWarning): f()",
    "fail": "def test_it():\n    if f(): pytest.fail('x')",
    "an AssertionError": "def test_it():\n    if f(): raise AssertionError('x')",
    "a status": "def test_it(): subprocess.run(['true'], check=True)",
    "a method": "def test_it(): Run().check()",
    "a method of a variable": "def test_it():\n    r = Run()\n    r.check()",
    "an inherited method": "def test_it(): Longer().check()",
    "a method of what a function gives": "def test_it():\n    r = made()\n    r.check()",
    "of what a function gives without a word": "def test_it(): any_of().check()",
    "a method of an argument": "def test_it(r: Run): r.check()",
    "a nested function": """
def test_it():
    def inner(): assert f() == 1
    inner()""",
    "a nested function that is handed on": """
def test_it():
    def inner(): assert f() == 1
    run_in_a_thread(inner)""",
    "a generator that is asked": "def test_it():\n    for x in items([1]): pass",
    "a fixture that gives a function": "def test_it(compare): compare(f(), 1)",
    "a fixture that gives an object": "def test_it(run): run.check()",
    "a fixture that asserts at the end": "def test_it(watched): f(watched)",
    "a fixture by a mark": "@pytest.mark.usefixtures('watched')\ndef test_it(): f()",
    "a table": "@pytest.mark.parametrize('n', TABLE)\ndef test_it(n): TABLE[n](1)",
    "parameters": "@pytest.mark.parametrize('of', [same, near])\ndef test_it(of): of(1, 2)",
    "one of two parameters": """
@pytest.mark.parametrize(("x", "of"), [(1, same), (2, near)])
def test_it(x, of): of(x, 2)""",
    "a class": """
class TestIt:
    def check(self): same(1, f())
    def test_it(self): self.check()""",
    "caught, and looked at": """
def test_it():
    try:
        f()
    except AssertionError as e:
        assert 'x' in str(e)""",
}


def silent(source: str, root: Path) -> list[str]:
    path = root / "tests" / "unit" / "test_it.py"
    sources = {path: HEAD + source, root / "tests" / "helpers.py": HELPERS}
    return Proofs(root, {**sources, root / "tests" / "__init__.py": ""}).silent(path)


@pytest.mark.parametrize("name", SILENT)
def test_what_cannot_fail_is_named(name: str, tmp_path: Path) -> None:
    assert silent(SILENT[name], tmp_path) == ["test_it"]


@pytest.mark.parametrize("name", RIGHT)
def test_what_can_fail_is_not(name: str, tmp_path: Path) -> None:
    assert silent(RIGHT[name], tmp_path) == []

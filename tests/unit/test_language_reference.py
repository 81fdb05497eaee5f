"""docs/language: made from the registry, with examples that run."""

from __future__ import annotations

import ast
import linecache
import re
import textwrap
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

import engine as wp
from engine.builtins.families import FAMILIES, family_of
from engine.builtins.stubs import BUILTINS
from engine.diagnostics import EngineError, KernelError
from engine.frontend import lower_kernel
from tools import make_reference
from tools.reference.pages import members, split
from tools.reference.signatures import overloads, signatures
from tools.reference.statements import REFUSED, ROWS

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "language"
EXAMPLES = pytest.mark.host("an example asks a hash grid, which is memory of the host")


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    """Every file as it is made now; runs the examples."""
    return make_reference.files()


@EXAMPLES
def test_pages_and_stubs_are_up_to_date(made: dict[str, str]) -> None:
    assert make_reference.stale(made) == [], "run python tools/make_reference.py"


def test_every_builtin_stands_in_one_family() -> None:
    for name in BUILTINS:
        found = [f.name for f in FAMILIES if any(fnmatchcase(name, p) for p in f.members)]
        assert len(found) == 1, (name, found)
    assert sorted(n for f in FAMILIES for n in members(f)) == sorted(BUILTINS)
    with pytest.raises(KeyError, match="add it in"):
        family_of("no_such_builtin")


@EXAMPLES
def test_every_builtin_has_signature_meaning_and_derivative(made: dict[str, str]) -> None:
    for name in BUILTINS:
        text = made[f"docs/language/{family_of(name).name}.md"]
        entry = text.split(f"\n### {name}\n")[1].split("\n### ")[0]
        assert f"{name}(" in entry
        assert "\nDerivative" in entry, name
        for told in re.findall(r"^Derivative.*none(.*)$", entry, re.MULTILINE):
            assert len(told) > 10, name  # with the reason


@EXAMPLES
def test_links_lead_somewhere(made: dict[str, str]) -> None:
    for name, text in made.items():
        page = ROOT / name
        for target, anchor in re.findall(r"\]\(([^)#]+)#?([^)]*)\)", text):
            found = page.parent / target
            assert found.exists(), (name, target)
            assert not anchor or f"\n### {anchor}\n" in found.read_text()


def test_every_example_has_a_page() -> None:
    examples = {p.stem for p in (FOLDER / "examples").glob("*.py")}
    assert examples == {f.name for f in FAMILIES}
    for family in FAMILIES:  # with something of the family in it
        text = (FOLDER / "examples" / f"{family.name}.py").read_text()
        assert family.name == "operators" or any(f"wp.{n}(" in text for n in members(family))


def test_signatures_are_what_calls_accept() -> None:
    """Of some builtins, the whole list: found by probing, so that it can be wrong."""
    want: dict[str, list[str]] = {
        "sin": ["sin(x: F) -> F"],
        "outer": ["outer(a: vec[N, T], b: vec[M, T]) -> mat[N, M, T]"],
        "argmax": ["argmax(v: vec[N, T]) -> uint32"],
        "bit_and": [
            "bit_and(a: I, b: I) -> I",
            "bit_and(a: vec[N, I], b: vec[N, I]) -> vec[N, I]",
            "bit_and(a: mat[N, M, I], b: mat[N, M, I]) -> mat[N, M, I]",
        ],
        "trace": ["trace(a: mat[N, N, T]) -> T"],
        "inverse": [f"inverse(a: mat[{n}, {n}, F]) -> mat[{n}, {n}, F]" for n in (2, 3, 4)],
        "randf": [
            "randf(state: uint32) -> float32",
            "randf(state: uint32, low: float32, high: float32) -> float32",
        ],
        "rand_init": [
            "rand_init(seed: int32 | uint32) -> uint32",
            "rand_init(seed: int32 | uint32, offset: int32 | uint32) -> uint32",
        ],
        "transform_point": [
            "transform_point(t: transform[F], x: vec[3, F]) -> vec[3, F]",
            "transform_point(m: mat[4, 4, F], x: vec[3, F]) -> vec[3, F]",
        ],
        "svd2": [
            "svd2(A: mat[2, 2, F]) -> (mat[2, 2, F], vec[2, F], mat[2, 2, F])",
            "svd2(A: mat[2, 2, F], U: mat[2, 2, F], sigma: vec[2, F], V: mat[2, 2, F]) -> None",
        ],
    }
    for name, lines in want.items():
        assert [line for o in overloads(name) for line in signatures(name, o)] == lines


@EXAMPLES
def test_stubs_name_every_builtin(made: dict[str, str]) -> None:
    tree = ast.parse(made["engine/builtins/names.pyi"])
    named = {n.name: ast.get_docstring(n) for n in tree.body if isinstance(n, ast.FunctionDef)}
    assert set(named) == set(BUILTINS)
    assert all(named.values())


@pytest.mark.parametrize("name", ["sin", "quat_slerp", "atomic_add", "vector", "svd3"])
def test_help_tells_what_a_builtin_does(name: str, capsys: Any) -> None:
    help(getattr(wp, name))
    printed = capsys.readouterr().out
    assert f"{name}(" in printed
    assert "Methods" not in printed  # about the function, not about its class


def test_docs_say_the_form_of_a_call_first() -> None:
    for b in BUILTINS.values():
        for line in (b.__doc__ or "").splitlines():
            form, text = split(line)
            assert "(" in form
            assert text.endswith("."), line
    with pytest.raises(EngineError):
        wp.sin("x")


def kernel_of(example: str, functions: str = "") -> Any:
    """A kernel with statements in it, as the table of statements shows them."""
    text = (
        f"import engine as wp\n{functions}@wp.kernel\ndef kernel(x: wp.array(dtype=wp.float64), "
        "y: wp.array(dtype=wp.float64), n: int):\n" + textwrap.indent(example, "    ") + "\n"
    )
    file = f"<statements {hash(example)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names: dict[str, Any] = {"__name__": "statements"}
    exec(compile(text, file, "exec"), names)
    return names["kernel"].func


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_statements_that_are_shown_are_of_the_language(row: Any) -> None:
    assert lower_kernel(kernel_of(row.example, row.functions)).params


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row.name)
def test_statements_that_are_told_as_missing_are_refused(row: Any) -> None:
    with pytest.raises(KernelError) as told:
        lower_kernel(kernel_of(row.example))
    assert "E101" in {d.code for d in told.value.diagnostics}
    assert all(d.help for d in told.value.diagnostics)

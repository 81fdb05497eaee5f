"""Rules of JAX that were written by hand: right ones pass, wrong ones are caught."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from engine.autograd import TapeResult
from engine.foreign import Watched, watching
from tests.foreign.jax_corpus import HEAD, PROGRAMS, Program

jax = pytest.importorskip("jax", reason="jax is not installed")


@pytest.fixture(autouse=True)
def _config():
    before = jax.config.jax_enable_x64
    yield
    jax.config.update("jax_enable_x64", before)


def run(folder: Path, text: str) -> Watched:
    """Runs a program, and looks on."""
    file = folder / "program.py"
    file.write_text(HEAD + text)
    with watching() as watched:
        runpy.run_path(str(file), run_name="__main__")
    return watched


def checked(folder: Path, text: str) -> TapeResult:
    """The check of a program's rules."""
    (result,) = run(folder, text).results()
    return result


def verdicts(result: TapeResult) -> set[str]:
    return {p.verdict for x in result.launches for p in x.pairs}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_right(program: Program, tmp_path: Path) -> None:
    result = checked(tmp_path, program.text)
    assert result.launches and not result.unchecked
    assert verdicts(result) <= {"pass", *program.kinks}
    assert verdicts(result)


SPOILED = [(p, s) for p in PROGRAMS for s in p.spoilers]


@pytest.mark.parametrize(
    ("program", "spoiler"), SPOILED, ids=[f"{p.name}-{s[1]}" for p, s in SPOILED]
)
def test_spoiled(program: Program, spoiler: tuple[str, str], tmp_path: Path) -> None:
    assert program.text.count(spoiler[0]) == 1
    result = checked(tmp_path, program.text.replace(*spoiler))
    assert verdicts(result) & {"fail", "nan"}

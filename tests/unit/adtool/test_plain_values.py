"""Options whose values are made without Pydantic have those, and the errors, that typer gives."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest
import typer.main

from adtool.cli import app
from adtool.commands import plain_values
from adtool.usage import ClickException

CHECK: Any = typer.main.get_command(app).commands["check"]  # type: ignore[attr-defined]

LINES = [
    "a.py", "-m a b c", "--each a.py b.py -- x", "--seed 3 a.py", "--seed -3 a.py", "--seed 3.0 a",
    "--seed 00012 a", "--seed 1_0 a", "--seed ٣ a", "--seed 99999999999999999999 a", "--seed x a",
    "--order 2 a", "--order 3 a", "--order 0 a", "--max-inputs -1 a", "--max-inputs 5 a",
    "--eps 1e-3 a", "--eps 0 a", "--eps nan a", "--eps inf a", "--eps .5 a", "--eps 1. a",
    "--eps 1e400 a", "--eps 1e-3x a", "--timeout 30 a", "--timeout -1 a", "--rtol 1_0.0 a",
    "--format json a", "--format JSON a", "--format nothing a", "--overwrites warn a",
    "--no-end-to-end --taylor a", "--kernel a --kernel b* x", "--select G001 --ignore G002 a",
    "--tape 1 --tape 2 a", "--tape -1 a", "--tape x a", "--jobs 0 a", "-j 3 a", "--rerun a",
    "--gate note a", "--gate nothing a", "--alias warp a", "--alias engine a", "--memory 1.5 a",
    "--baseline b.json a", "--factor 2 a", "--factor 0.5 a", "--executor ray a", "--executor b a",
    "--output json=a.json a", "--verbose -q a", "", "--seed", "--nothing a",
]  # fmt: skip


def parsed(line: str) -> Any:
    """The parameters of `check`, or what is wrong with them."""
    try:
        return CHECK.make_context("check", line.split()).params
    except ClickException as error:
        return re.sub(r"\s+", " ", str(error.format_message()))  # type: ignore[attr-defined]


@pytest.mark.parametrize("line", LINES)
def test_values_are_those_of_typer(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = parsed(line)
    for parameter in CHECK.params:
        vars(parameter).pop("get_runtime_param", None)
    monkeypatch.setattr(plain_values, "_spared", lambda parameter: parameter)
    right = parsed(line)
    if isinstance(right, str) and "Input should be" in right:  # which leaves out the value
        value = line.split()[1]
        assert found.partition(": ")[0] == right.partition(": ")[0]
        assert "Input should be" not in found and value in found
    else:
        assert found == right
    if isinstance(right, dict):
        assert {n: type(v) for n, v in found.items()} == {n: type(v) for n, v in right.items()}


@pytest.mark.parametrize("line", ["check none.py", "graph none.py", "check --format json none.py",
                                  "check --seed 3 --eps 1e-3 -q none.py"])  # fmt: skip
def test_no_library_is_loaded_for_plain_values(line: str) -> None:
    code = (
        "import sys\nfrom adtool.cli import main\ntry:\n main(sys.argv[1:])\n"
        "except SystemExit: pass\nsys.exit(sorted({'pydantic', 'numpy'} & set(sys.modules)) != [])"
    )
    done = subprocess.run([sys.executable, "-c", code, *line.split()], check=False)
    assert done.returncode == 0

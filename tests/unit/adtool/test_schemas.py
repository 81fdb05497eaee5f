"""The published JSON Schemas: as made now, valid, and of one mind with the tool."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.main

from adtool import codec, report, schemas
from adtool.cli import app
from adtool.configuration import settings
from adtool.exits import ToolError
from tools.make_schemas import made

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

COMMANDS: Any = typer.main.get_command(app)


def test_what_is_published_is_what_is_made() -> None:
    for name, file in schemas.FILES.items():
        assert schemas.published(name) == made()[file], "run python tools/make_schemas.py"


@pytest.fixture(scope="module")
def validator() -> Any:
    """Gives what validates by a published schema, once that is valid itself."""
    jsonschema = pytest.importorskip("jsonschema", reason="validates JSON by schemas")

    def of(name: str) -> Any:
        schema = json.loads(schemas.published(name))
        jsonschema.Draft202012Validator.check_schema(schema)
        return jsonschema.Draft202012Validator(schema)

    return of


OVERRIDE = "[[tool.adtool.overrides]]\npaths = ['a']\n"


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("[tool.other]\nx = 1", True),
        ("[tool.adtool]\ngate = 'note'\neps = 1\nkernel = 'k'\njobs = 2", True),
        ("[tool.adtool]\nkernel = ['k', 'l']\ntape = [0, 1]\nmax_inputs = -1", True),
        ("[tool.adtool]\nno-end-to-end = true\nquiet = false\nformat = 'sarif'", True),
        ("[tool.adtool.jacobian]\ntimeout = 9\n[tool.adtool.check]\nformat = 'junit'", True),
        ("[tool.adtool]\nscripts = ['a', 'b/**/*.py']\nexclude = 'x'", True),
        (OVERRIDE + "eps = 0.1\nignore = ['G001']\n" + OVERRIDE + "gate = 'error'", True),
        ("[tool.adtool]\nbogus = 1", False),
        ("[tool.adtool]\neach = true", False),
        ("[tool.adtool]\neps = '1'", False),
        ("[tool.adtool]\neps = 0", False),
        ("[tool.adtool]\njobs = 0", False),
        ("[tool.adtool]\norder = 3", False),
        ("[tool.adtool]\ngate = 'none'", False),
        ("[tool.adtool]\nquiet = 1", False),
        ("[tool.adtool]\nkernel = [1]", False),
        ("[tool.adtool]\ntape = ['a']", False),
        ("[tool.adtool.jacobian]\neps = 1.0", False),
        ("[tool.adtool]\nscripts = 'a'", False),
        ("[[tool.adtool.overrides]]\neps = 1.0", False),
        (OVERRIDE + "jobs = 1", False),
        (OVERRIDE + "bogus = 1", False),
    ],
)
def test_settings(tmp_path: Path, validator: Any, text: str, good: bool) -> None:
    assert validator("config").is_valid(tomllib.loads(text)) is good
    (tmp_path / "pyproject.toml").write_text(text)
    if good:
        settings(tmp_path, COMMANDS.commands)
        return
    with pytest.raises(ToolError):
        settings(tmp_path, COMMANDS.commands)


def test_reports(validator: Any) -> None:
    valid = validator("report").is_valid
    failed = report.failed_report(report.Failure("usage", "why"), "adtool x")
    worst = report.Worst(0, 0, float("nan"), float("inf"))
    pair = report.Pair("x", "y", "nan", 1, float("nan"), None, worst)
    edit = report.Edit("f", 1, 1, 1, 2, "t")
    finding = report.Finding(
        "G001", "n", "error", "m", "h", "k", 0, 0, None, None, None,
        near=(("f", 1),), fix=report.Fix("m", True, (edit,)),
    )  # fmt: skip
    whole = report.Report(
        1, "adtool x", "s", "cpu", False, 1,
        (report.Launch(0, 0, "k", "f", 1, (3,), (pair,)),),
        (report.EndToEnd(0, "pass", 0.0),), (finding,),
        durations=(report.Duration(0, 0, "k", 0.5),),
    )  # fmt: skip
    data = codec.encode(whole)
    assert valid(codec.encode(failed)) and valid(data)
    assert valid({**data, "added": 1})
    several = {"schema": 1, "tool": "t", "ok": True, "exit_code": 0}
    assert valid({**several, "runs": [data]}) and valid({**several, "runs": [], "notes": ["n"]})
    for key, wrong in (("schema", 2), ("ok", 1), ("gate", "none"), ("launches", [{}]),
                       ("seconds", "long"), ("script", 3)):  # fmt: skip
        assert not valid({**data, key: wrong}), key
        assert not valid({**several, "runs": [{**data, key: wrong}]}), key
    del data["findings"]
    assert not valid(data)

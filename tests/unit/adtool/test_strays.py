"""Options of the tool that went to the script."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from adtool.job import Target
from adtool.strays import suspects, unused

KNOWN = ("--gate", "--kernel", "--max-inputs")


def test_which_arguments_are_suspect() -> None:
    args = ("--gate=note", "gate", "--kernel", "k", "--steps", "--kernel", "-q")
    assert suspects(Target("a.py", None, args), KNOWN) == ("--gate", "--kernel")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("import sys\n", ("--gate", "--max-inputs")),
        ("@wp.kernel\ndef gate(): ...\n", ("--gate", "--max-inputs")),
        ("p.add_argument('--gate')\n", ("--max-inputs",)),
        ("import fire\ndef main(max_inputs, gate): ...\nfire.Fire(main)\n", ()),
    ],
)
def test_a_program_that_knows_an_option_names_it(
    tmp_path: Path, text: str, left: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adtool.strays.sys", SimpleNamespace(modules={}))  # not those of the tests
    script = tmp_path / "script.py"
    script.write_text(text)
    assert unused(Target(str(script)), ("--gate", "--max-inputs")) == left

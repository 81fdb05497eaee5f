"""The tutorial is run: what it shows is what happens."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.page_runner import Step, differences, run


@pytest.fixture(scope="module")
def steps(root: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Step]:
    page = (root / "docs" / "tutorial.md").read_text(encoding="utf-8")
    return run(page, tmp_path_factory.mktemp("tutorial"))


def test_commands_print_what_is_shown(steps: list[Step]) -> None:
    assert len(steps) == 9
    for step in steps:
        found = differences(step.shown, step.printed)
        assert not found, "\n".join([f"$ {step.command}", *found])


def test_exit_codes_are_those_that_the_text_says(steps: list[Step]) -> None:
    codes = {step.command: step.status for step in steps}
    first, second = [s.status for s in steps if s.command == "adtool check --tape 0 fit.py"]
    assert (first, second) == (1, 0)
    assert codes.pop("adtool jacobian --kernel step --input spring --output v_next "
                     "--error relative fit.py") == 1  # fmt: skip
    del codes["adtool check --tape 0 fit.py"]
    assert set(codes.values()) == {0}


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a 1\nb", "a 1\nb", True),
        ("a 1", "a 2", False),
        ("a\n...\nd", "a\nb\nc\nd", True),
        ("a\n...\nd", "a\nb\nc", False),
        ("...\nc", "a\nb\nc", True),
        ("a\n...", "b\na", False),
        ("a", "a\nb", False),
        ("a\n...\na", "a", False),
        ("done in 1.0 s", "done in 2.5 s", True),
        ("k x y 4 1e-12 pass", "k x y 4 3e-12 pass", True),
        ("k x y 4 0.1 fail", "k x y 4 0.2 fail", False),
        ("1 fail\n2 fail", "2 fail\n1 fail", True),
    ],
)
def test_the_comparison_sees_differences(shown: str, printed: str, same: bool) -> None:
    assert (differences(shown, printed) == []) == same

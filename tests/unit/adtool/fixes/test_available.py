"""The line below a report that offers fixes: it names the options that show or make them."""

from __future__ import annotations

from pathlib import Path

import pytest

from adtool.fixes.available import Offers, offered
from adtool.report import Edit, Fix
from tests.reports import finding


@pytest.mark.parametrize(
    ("safe", "unsafe", "offers", "line"),
    [
        (0, 0, "all", ""),
        (1, 0, "all", "1 with --fix; --diff shows it"),
        (2, 0, "all", "2 with --fix; --diff shows them"),
        (0, 1, "all", "1 with --fix --unsafe-fixes; --diff --unsafe-fixes shows it"),
        (1, 2, "all",
         "1 with --fix, 2 more with --fix --unsafe-fixes; --diff --unsafe-fixes shows them"),
        (1, 0, "unsafe", ""),
        (1, 2, "unsafe", "2 with --fix --unsafe-fixes; --diff --unsafe-fixes shows them"),
        (1, 2, "none", ""),
    ],
)  # fmt: skip
def test_what_is_offered(
    safe: int, unsafe: int, offers: Offers, line: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)  # files below it may be changed
    file = tmp_path / "a.py"
    file.write_text("a = 1\n")
    edits = [(Edit(str(file), 1, 5, 1, 6, str(k)),) for k in range(safe + unsafe)]
    some = [finding(fix=Fix("do it", k < safe, x)) for k, x in enumerate(edits)]
    expected = f"fixes to try: {line}" if line else ""
    assert offered(some, offers) == expected
    assert offered([*some, *some], offers) == expected  # one and the same change

"""Refusals of `adtool report`, and their messages, in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adtool.cli import main


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["script.py"], "no file to write the page to is named"),
        (["script.py", "--out", "page.txt"], "`page.txt` cannot be written: its name"),
        (["script.py", "--out", "no/page.html"], "the folder `no` does not exist"),
        (["no.json", "--out", "page.html"], "cannot be read"),
        (["bad.json", "--out", "page.html"], "is not a report of adtool"),
        (["empty.json", "--out", "page.html"], "is not a report of adtool"),
        (["odd.json", "--out", "page.html"], "is not a report of adtool"),
        (["--out", "page.html", "bad.json", "more"], "after `bad.json`"),
        (["run.adt", "--out", "page.html"], "the capture `run.adt` does not exist"),
        (["--out", "page.html"], "no run to draw"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("script.py").write_text("pass\n")
    Path("bad.json").write_text('{"schema": 1, "runs": [3]}')
    Path("empty.json").write_text("")
    Path("odd.json").write_bytes(b"\xff\xfe")
    with pytest.raises(SystemExit) as ended:
        main(["report", *words])
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert said in told
    assert "Traceback" not in told
    assert not Path("page.html").exists()

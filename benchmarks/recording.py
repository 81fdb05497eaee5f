"""Results as they come: data after each row, the page and the plots at the end."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.page import line, markdown
from benchmarks.plots import draw
from benchmarks.verdicts import judge_all

HERE = Path(__file__).resolve().parent
RECORD = HERE / "results"
RUNNING = "running.json"  # of a run that has not ended
DATA = "full.json"


class Recording:
    """What a run has found so far. folder: where it is written, or None: it is only printed."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.result: dict[str, Any] = {"schema": 2, "rows": [], "alone": [], "curves": []}
        self.start = time.monotonic()
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def say(self, text: str) -> None:
        """A line about how far it is."""
        print(f"{time.monotonic() - self.start:6.0f} s  {text}", file=sys.stderr, flush=True)

    def reload(self) -> None:
        """Goes on with what is on record."""
        if self.folder is not None:
            text = (self.folder / DATA).read_text(encoding="utf-8")
            self.result = json.loads(text)

    def add(self, row: dict[str, Any]) -> None:
        """A row: in the place of the one of its name, if there is one, else at the end."""
        rows = self.result["rows"]
        at = [i for i, r in enumerate(rows) if r["name"] == row["name"]]
        rows[at[0] if at else len(rows) : at[0] + 1 if at else len(rows)] = [row]
        judge_all(self.result)
        for one in row["passes"]:
            print(line(row, one), flush=True)
        for name, why in row["failed"].items():
            print(f"{row['name']:<16} {name} failed: {why}", flush=True)
        self.write()

    def put(self, key: str, value: Any) -> None:
        """Anything else."""
        self.result[key] = value
        self.write()

    def write(self, name: str = RUNNING) -> None:
        """The data, in one step."""
        if self.folder is not None:
            unfinished = self.folder / f"{name}.new"
            unfinished.write_text(json.dumps(self.result, indent=1) + "\n", encoding="utf-8")
            unfinished.replace(self.folder / name)

    def finish(self) -> None:
        """Data, page and plots; the page of what is on record stands beside its folder."""
        judge_all(self.result)
        text = markdown(self.result)
        if self.folder is None:
            print("\n" + text)
            return
        self.write(DATA)
        (self.folder / RUNNING).unlink(missing_ok=True)
        try:
            draw(self.result, self.folder)
        except ImportError:
            self.say("no plots: matplotlib is not installed")
        if self.folder == RECORD:
            (HERE / "RESULTS.md").write_text(text, encoding="utf-8")
        else:
            own = text.replace("](results/", "](").replace("](README.md)", "](../README.md)")
            (self.folder / "RESULTS.md").write_text(own, encoding="utf-8")
        self.say(f"written: {self.folder}")

"""Writes the reports of `adtool check` to the terminal and to files."""

from __future__ import annotations

import difflib
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from adtool.commands import step
from adtool.exits import ToolError
from adtool.fixes.available import Offers
from adtool.job import Target
from adtool.render.formats import FORMATS, Setting, render
from adtool.report import Report
from adtool.saying import say
from adtool.writing import require_place, spare_others, write_file
from engine.classes import dataclass


@dataclass(frozen=True, slots=True)
class Output:
    """A file that a report goes to."""

    format: str
    path: str


@dataclass(frozen=True, slots=True)
class Style:
    """How reports are written. format: that of standard output, or of the files without one.

    files: what is written beside. stdout: whether a report goes to standard output at all.
    annotations: whether GitHub is told where the environment says that it listens. offers: the
    fixes that the summary offers.
    """

    format: str
    files: tuple[Output, ...] = ()
    stdout: bool = True
    verbose: bool = False
    quiet: bool = False
    no_color: bool = False
    annotations: bool = True
    offers: Offers = "all"

    @property
    def text(self) -> bool:
        """Whether the report is for people, and may come piece by piece."""
        return self.format == "text"

    @property
    def data_on_stdout(self) -> bool:
        """Whether standard output is for a reader that takes nothing else there."""
        return self.stdout and not self.text


# What formats are called elsewhere, or by the endings of their files.
_ALSO = {"xml": "junit", "txt": "text", "plain": "text", "md": "markdown", "annotations": "github"}


def outputs_of(
    words: Sequence[str], format: str, settings: bool = False, others: Sequence[str] = ()
) -> tuple[tuple[Output, ...], bool]:
    """The files that `--out` names, and whether standard output still gets a report.

    `FORMAT=FILE` where there is a `=` and only letters before it; else the word is a file for a
    report in `format`, and standard output is left to the script. settings: whether the words are
    those of `pyproject.toml`, which replace nothing but reports of adtool's. others: files that the
    command writes beside.

    Raises:
        ToolError: there is no such format, or a file is named twice, has no name, or cannot be
            written.
    """
    found: list[Output] = []
    stdout = True
    for word in words:
        name, equals, path = word.partition("=")
        if equals and name.isalpha() and name not in FORMATS:
            raise ToolError(f"--out {word}: there is no format `{name}`",
                            f"{_instead(name, path)} A file of that name is ./{word}"
                            )  # fmt: skip
        if not equals or name not in FORMATS:
            name, path, stdout = format, word, False
        if not path:
            raise ToolError(
                f"--out {shlex.quote(word)} names no file", "write --out sarif=FILE, or FILE"
            )
        found.append(Output(name, path))
    paths = [*map(_place, others), *(_place(o.path) for o in found)]
    for number, path in enumerate(paths):
        if path in paths[:number]:
            name = found[number - len(others)].path
            raise ToolError(f"two reports go to `{name}`", "name another file")
    for output in found:
        require_place(Path(output.path))
        if settings:
            spare_others(Path(output.path))
    return tuple(found), stdout


def _instead(name: str, path: str) -> str:
    """What may be meant by a format that there is not."""
    if name.lower() in ("html", "htm"):
        return f"a page is written by `adtool report SCRIPT --out {path or 'FILE'}`."
    near = difflib.get_close_matches(name.lower(), FORMATS, 1)
    meant = _ALSO.get(name.lower()) or (near[0] if near else "")
    if meant:
        return f"did you mean {meant}={path or 'FILE'}?"
    return f"the formats are {', '.join(FORMATS)}."


def _place(path: str) -> str:
    """What a file is compared by: its folder without links. One that is a link is replaced."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


class CheckOutput:
    """The reports of one call. To be told of each target in their order, then to finish.

    notes: what is to be said of the choice of targets, where there was one; what is written has
    the form of several reports then, however many there are.
    """

    def __init__(self, style: Style, count: int, notes: Sequence[str] = ()) -> None:
        self.style = style
        self._notes = tuple(notes)
        self._several = count != 1 or bool(notes)
        self._count = count
        self._reports: list[Report] = []
        self._left: set[int] = set()  # places of those that were not begun
        for note in notes:
            self._say(f"note: {note}")

    def begin(self, target: Target, number: int) -> None:
        """Says which target comes now, of several. number: from 1."""
        if self._several:
            self._say(f"{number} of {self._count}: {target.name}")

    def _say(self, line: str) -> None:
        say(line, file=sys.stdout if self.style.text else sys.stderr)

    def add(self, report: Report) -> None:
        """Takes the report of the target that was begun last."""
        from adtool.render import text

        self._reports.append(report)
        if not self.style.text:
            return
        if self.style.stdout:
            text.print_report(
                report, self._console(sys.stdout), self.style.verbose, self.style.quiet,
                self.style.offers,
            )  # fmt: skip
            sys.stdout.flush()
        if report.error is not None:
            text.print_failure(report.error, self._console(sys.stderr))

    def leave_out(self, report: Report) -> None:
        """Takes the report of a target that was not begun: it is named among all, no more."""
        self._left.add(len(self._reports))
        self._reports.append(report)

    def finish(self) -> None:
        """Writes what needs all reports. Some may be missing, after an interrupt.

        Every file is tried, then the first that could not be written is an error.
        """
        from adtool.render import text

        style, reports = self.style, self._reports
        if style.text and style.stdout and self._several:
            text.print_runs(reports, self._console(sys.stdout))
            sys.stdout.flush()
        self._write_files()
        if style.data_on_stdout:
            sys.stdout.write(self._rendered(style.format))
            sys.stdout.flush()
        if not style.text:
            for number, report in enumerate(reports):
                if report.error is not None and number not in self._left:
                    text.print_failure(report.error, self._console(sys.stderr))
        if not style.quiet and not style.data_on_stdout:
            if not style.stdout:
                for number, report in enumerate(reports):
                    if number not in self._left:
                        text.print_summary(report, self._console(sys.stdout), style.offers)
            for o in style.files:
                which = "report" if o.format == style.format else f"{o.format} report"
                say(f"{which} written to {o.path}")
        if style.annotations:
            step.tell(style.format, style.data_on_stdout, self._rendered)

    def _write_files(self) -> None:
        known: dict[str, bytes] = {}
        failed: ToolError | None = None
        for o in self.style.files:
            if o.format not in known:
                text = self._rendered(o.format)
                known[o.format] = text.encode("utf-8", "backslashreplace")
            try:
                write_file(known[o.format], Path(o.path))
            except ToolError as error:
                failed = failed or error
        if failed is not None:
            raise failed

    def _rendered(self, format: str) -> str:
        folder = ""
        with suppress(OSError):  # it was removed
            folder = os.getcwd()
        root = os.environ.get("GITHUB_WORKSPACE") or folder
        setting = Setting(
            folder, root, self._count, self.style.verbose, self.style.quiet, self._notes,
            self.style.offers,
        )  # fmt: skip
        return render(format, self._reports, setting)

    def _console(self, stream: TextIO) -> Any:
        from adtool.render.text import make_console

        return make_console(stream, self.style.no_color)

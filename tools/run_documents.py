"""Runs the documents from nothing, as a reader would, and compares the output that they show.

Usage: python tools/run_documents.py [DOCUMENT...] [--update] [--venv PATH] [--jobs N]

Each document is followed from top to end by one plain `sh`, in an empty home with a fresh copy of
the checkout: `pip` installs, environments are activated, files that are shown are saved. What a
command prints is compared with what is shown under it, and its exit code with 0, with what
`echo $?` shows, or with `<!-- exit code N -->` before the block. `...` on a line of its own
stands for any lines. A block behind `<!-- not run: REASON -->` is left out, and listed.

--update writes what was printed into the documents where it differs. --venv takes an environment
in which adtool is installed in place of making some: quick, for work on a document. Documents that
begin with the same command share the environment which that makes.

Exit code 0: all is as the documents say. 1: something is not.
"""

from __future__ import annotations

import argparse
import difflib
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tools.documents.comparison import renewed  # noqa: E402
from tools.documents.markdown import Document  # noqa: E402
from tools.documents.reader import Reader, Step  # noqa: E402
from tools.documents.shell import ShellSession  # noqa: E402

DOCUMENTS = (
    "README.md", "docs/tutorial.md", "docs/ci.md", "docs/fix.md",
    "docs/baseline.md", "docs/captures.md", "docs/report.md", "docs/frameworks.md",
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """What came of a document. error: why it could not be followed, or nothing."""

    document: Document
    steps: list[Step]
    seconds: float
    error: str


def main() -> int:
    """Follows the documents, and prints what is not as they say."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("documents", nargs="*", default=DOCUMENTS, metavar="DOCUMENT")
    parser.add_argument("--update", action="store_true", help="write the output into them")
    parser.add_argument("--venv", type=Path, help="an environment to use, adtool in it")
    parser.add_argument("--jobs", type=int, default=1, help="environments at once")
    args = parser.parse_args()
    documents = [Document.read(ROOT, name) for name in args.documents]
    venv = args.venv.absolute() if args.venv else None
    failed = 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    for run in runs(documents, venv, args.jobs):
        wrong = [s for s in run.steps if s.wrong]
        told = [f"{run.document.name}: {len(run.steps)} commands, {run.seconds:.0f} s"]
        told += [difference(run.document, step) for step in wrong]
        print("\n".join([*told, run.error] if run.error else told), flush=True)
        if args.update:
            update(run.document, run.steps)
        failed += bool(wrong or run.error)
    for document in documents:
        for block in document.not_run():
            first = block.text.splitlines()[0]
            print(f"not run: {document.name}:{block.line}: `{first}`: {block.not_run}")
    return 1 if failed else 0


def setup(document: Document) -> str:
    """The first command of a document, which makes its environment."""
    return next(
        b.commands()[0].text for b in document.blocks() if b.is_shell and not b.not_run
    )  # fmt: skip


def runs(documents: list[Document], venv: Path | None, jobs: int) -> Iterator[Run]:
    """Follows documents, those that begin with the same command one after the other."""
    with (
        tempfile.TemporaryDirectory(prefix="adtool-documents-") as folder,
        ThreadPoolExecutor(jobs) as pool,
    ):
        # The folder of an environment names it for good, so each group has one.
        groups = [list(group) for _, group in groupby(sorted(documents, key=setup), setup)]
        readers = [Reader(ROOT, Path(folder) / str(k), venv) for k in range(len(groups))]
        begun = [pool.submit(followed, *pair) for pair in zip(groups, readers, strict=True)]
        try:
            for future in begun:
                yield from future.result()
        finally:  # after an interrupt there are some
            pool.shutdown(wait=False, cancel_futures=True)
            ShellSession.end_all()


def followed(group: list[Document], reader: Reader) -> list[Run]:
    """What came of each document."""
    found = []
    for document in group:
        start, steps, error = time.monotonic(), [], ""
        try:
            steps = reader.follow(document)
        except (ValueError, RuntimeError, TimeoutError) as caught:
            error = f"{document.name}: {caught}"
        found.append(Run(document, steps, time.monotonic() - start, error))
    return found


def difference(document: Document, step: Step) -> str:
    """What is not as the document says."""
    lines = [f"{document.name}:{step.line}: $ {step.command.text}", f"  {step.wrong}"]
    if step.code != step.command.code or step.command.shown is None:
        return "\n".join([*lines, *(f"  {x}" for x in step.printed.splitlines()[-30:])])
    shown = step.command.shown.splitlines()
    compared = difflib.unified_diff(
        shown, step.printed.strip("\n").splitlines(), "shown", "printed", lineterm="", n=1
    )
    return "\n".join([*lines, *(f"  {x}" for x in compared)])


def update(document: Document, steps: list[Step]) -> None:
    """Writes what was printed in place of what is shown, where that differs.

    Raises SystemExit where the document was changed while it was run.
    """
    path = ROOT / document.name
    if path.read_text(encoding="utf-8") != document.text:
        raise SystemExit(f"{document.name} was changed meanwhile: it stays as it is")
    lines = document.text.splitlines()
    for step in reversed(steps):
        command = step.command
        if command.shown is None or not step.wrong or step.code != command.code:
            continue
        text = renewed(command.shown, step.printed)
        lines[command.first : command.last] = text.split("\n") if text else []
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

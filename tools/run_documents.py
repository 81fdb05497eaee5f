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
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tools.documents.comparison import renewed  # noqa: E402
from tools.documents.markdown import Document  # noqa: E402
from tools.documents.reader import Reader, Step  # noqa: E402

DOCUMENTS = (
    "README.md", "docs/index.md", "docs/tutorial.md", "docs/ci.md", "docs/fix.md",
    "docs/baseline.md", "docs/captures.md", "docs/report.md", "docs/frameworks.md",
)  # fmt: skip


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
    groups = [list(g) for _, g in groupby(sorted(documents, key=setup), setup)]
    with (
        tempfile.TemporaryDirectory(prefix="adtool-documents-") as folder,
        ThreadPoolExecutor(args.jobs) as pool,
    ):
        # The folder of an environment names it for good, so each group has one.
        runs = [
            pool.submit(lambda k=k, group=group: list(  # type: ignore[misc]
                followed(group, Reader(ROOT, Path(folder) / str(k), venv))))
            for k, group in enumerate(groups)
        ]  # fmt: skip
        for run in runs:
            for document, steps, seconds in run.result():
                wrong = [s for s in steps if s.wrong]
                print(f"{document.name}: {len(steps)} commands, {seconds:.0f} s", flush=True)
                for step in wrong:
                    print(told(document, step), flush=True)
                if args.update:
                    update(document, steps)
                failed += bool(wrong)
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


def followed(group: list[Document], reader: Reader) -> Iterator[tuple[Document, list[Step], float]]:
    """The steps of each document, and how long they took."""
    for document in group:
        start = time.monotonic()
        try:
            steps = reader.follow(document)
        except (ValueError, RuntimeError, TimeoutError) as error:
            raise SystemExit(f"{document.name}: {error}") from None
        yield document, steps, time.monotonic() - start


def told(document: Document, step: Step) -> str:
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

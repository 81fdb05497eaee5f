"""Fails where a Python file has grown too long: files of 500 lines and more are hard to read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

WARN = 300
FAIL = 500


def python_files(root: Path) -> list[Path]:
    """Python files below `root` that git tracks or would track."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.py"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    paths = (root / name for name in listing.stdout.split("\0") if name)
    return sorted(path for path in set(paths) if path.is_file())


def line_count(path: Path) -> int:
    """Number of lines of a text file."""
    return len(path.read_text(encoding="utf-8").splitlines())


def main(root: Path) -> int:
    """Prints the files that are too long. Returns 1 where one is over the limit."""
    counts = {path.relative_to(root): line_count(path) for path in python_files(root)}
    for path, lines in sorted(counts.items(), key=lambda item: -item[1]):
        if lines > WARN:
            verdict = "error" if lines > FAIL else "warning"
            print(f"{verdict}: {path} has {lines} lines (aim for {WARN}, at most {FAIL})")
    if not counts:
        print("error: no Python files found")
        return 1
    too_long = sum(lines > FAIL for lines in counts.values())
    print(f"file sizes: {len(counts)} files, {too_long} too long")
    return 1 if too_long else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parents[1]))

"""Makes the pictures of docs/ from the samples: python tools/make_pictures.py [FOLDER].

Needs the program `dot` of Graphviz. Every picture is made by the command that its page shows.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# The file, the sample, the command and what follows it.
PICTURES = (
    ("broken_missing_requires_grad.svg", "broken_missing_requires_grad", "graph", "--out"),
    ("mass_spring_norms.svg", "mass_spring", "trace", "--plot"),
)


def main(folder: Path) -> None:
    """Makes all of them. Raises CalledProcessError where a command fails."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, sample, command, option in PICTURES:
        script = ROOT / "samples" / f"{sample}.py"
        with tempfile.TemporaryDirectory() as here:  # `.adtool` must not be left behind
            subprocess.run(
                [sys.executable, "-m", "adtool", command, script.name, option, folder / name],
                cwd=_beside(script, Path(here)), check=True, stdout=subprocess.DEVNULL,
            )  # fmt: skip
        print(folder / name)


def _beside(script: Path, here: Path) -> Path:
    """A folder with nothing but the script: titles then name no path of this machine."""
    (here / script.name).write_text(script.read_text(encoding="utf-8"), encoding="utf-8")
    return here


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "pictures").resolve())

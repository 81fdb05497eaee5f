"""Makes the pictures of docs/ from the samples: python tools/make_pictures.py [FOLDER].

Needs the program `dot` of Graphviz. Every picture is made by the command that its page shows.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# The file, the sample, and the command; the file's name follows it.
PICTURES = (
    ("broken_missing_requires_grad.svg", "broken_missing_requires_grad", "graph --out"),
    ("mass_spring_norms.svg", "mass_spring", "trace --plot"),
    ("inverse_heat_jacobian.png", "inverse_heat", "jacobian --kernel conduct --plot"),
    (
        "broken_wrong_gradient_errors.png", "broken_wrong_gradient",
        "jacobian --kernel robust_loss --error relative --plot",
    ),
)  # fmt: skip


def main(folder: Path) -> None:
    """Makes all of them. Exits where a command fails."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, sample, command in PICTURES:
        script = ROOT / "samples" / f"{sample}.py"
        with tempfile.TemporaryDirectory() as here:  # `.adtool` must not be left behind
            done = subprocess.run(
                [sys.executable, "-m", "adtool", *command.split(), folder / name, script.name],
                cwd=_beside(script, Path(here)), check=False, stdout=subprocess.DEVNULL,
            )  # fmt: skip
        if done.returncode > 1:  # 1 is a finding, which a broken sample has
            sys.exit(f"{name}: status {done.returncode}")
        print(folder / name)


def _beside(script: Path, here: Path) -> Path:
    """A folder with nothing but the script: titles then name no path of this machine."""
    (here / script.name).write_text(script.read_text(encoding="utf-8"), encoding="utf-8")
    return here


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "pictures").resolve())

"""Makes the pictures of docs/ from the samples: python tools/make_pictures.py [FOLDER].

Needs playwright and a Chromium for the picture of a page. Every picture is made by the command that
its page shows.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# The file, the sample, and the command; the file's name follows it.
PICTURES = (
    ("broken_missing_requires_grad.svg", "broken_missing_requires_grad", "graph --out"),
    ("mass_spring_norms.svg", "mass_spring", "trace --out"),
    ("inverse_heat_jacobian.png", "inverse_heat", "jacobian --kernel conduct --out"),
    (
        "broken_wrong_gradient_errors.png", "broken_wrong_gradient",
        "jacobian --kernel robust_loss --error relative --out",
    ),
    ("report.png", "broken_wrong_gradient", "report --out"),
)  # fmt: skip


def main(folder: Path) -> None:
    """Makes all of them. Exits where a command fails."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, sample, command in PICTURES:
        script = ROOT / "samples" / f"{sample}.py"
        with tempfile.TemporaryDirectory() as here:  # `.adtool` must not be left behind
            page = Path(here) / "page.html" if command.startswith("report") else None
            out = page or folder / name
            done = subprocess.run(
                [sys.executable, "-m", "adtool", *command.split(), out, script.name],
                cwd=_beside(script, Path(here)), check=False, stdout=subprocess.DEVNULL,
            )  # fmt: skip
            if done.returncode > 1:  # 1 is a finding, which a broken sample has
                sys.exit(f"{name}: status {done.returncode}")
            if page is not None:
                _seen(page, folder / name)
        print(folder / name)


def _seen(page: Path, picture: Path) -> None:
    """Takes a picture of a page's top. Exits where there is no browser."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    browser = next((p for n in names if (p := shutil.which(n))), None)
    if browser is None:
        sys.exit(f"{picture.name}: no browser on PATH: {', '.join(names)}")
    flags = ["--no-sandbox", "--headless", "--disable-gpu", "--no-first-run"]
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=browser, args=flags)
        tab = made.new_page(viewport={"width": 1280, "height": 1180}, color_scheme="light")
        tab.goto(page.as_uri())
        tab.screenshot(path=picture)
        made.close()


def _beside(script: Path, here: Path) -> Path:
    """A folder with nothing but the script: titles then name no path of this machine."""
    (here / script.name).write_text(script.read_text(encoding="utf-8"), encoding="utf-8")
    return here


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "pictures").resolve())

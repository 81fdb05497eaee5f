"""Makes docs/pictures/report.png: python tools/make_page_picture.py [FILE].

Needs playwright, and a Chromium on PATH.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = "broken_wrong_gradient.py"
_FLAGS = ("--no-sandbox", "--headless", "--disable-gpu", "--no-first-run")
_NAMES = ("chromium", "chromium-browser", "google-chrome")


def main(file: Path) -> None:
    """Makes the page of a sample and takes a picture of its top. Exits where that fails."""
    from playwright.sync_api import sync_playwright

    browser = next((p for n in _NAMES if (p := shutil.which(n))), None)
    if browser is None:
        sys.exit(f"no browser on PATH: {', '.join(_NAMES)}")
    with tempfile.TemporaryDirectory() as here:
        script = Path(here) / SAMPLE
        script.write_text((ROOT / "samples" / SAMPLE).read_text(encoding="utf-8"), encoding="utf-8")
        command = [sys.executable, "-m", "adtool", "report", SAMPLE, "--html", "page.html"]
        done = subprocess.run(command, cwd=here, check=False, stdout=subprocess.DEVNULL)
        if done.returncode > 1:  # 1 is a finding, which the sample has
            sys.exit(f"status {done.returncode}")
        with sync_playwright() as playwright:
            made = playwright.chromium.launch(executable_path=browser, args=list(_FLAGS))
            page = made.new_page(viewport={"width": 1280, "height": 1180}, color_scheme="light")
            page.goto((Path(here) / "page.html").as_uri())
            page.screenshot(path=file)
            made.close()
    print(file)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "pictures" / "report.png"))

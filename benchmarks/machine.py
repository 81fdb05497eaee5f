"""Describes the machine of a run, without names of hosts, users or folders."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def cpu_model() -> str:
    """The processor's name."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1] for line in text.splitlines() if line.startswith("model name")]
    return names[0].strip() if names else platform.machine()


def compiler() -> str:
    """First line of the C++ compiler's version."""
    name = next((c for c in ("g++", "clang++", "c++") if shutil.which(c)), "")
    if not name:
        return "none"
    done = subprocess.run([name, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()[0] if done.stdout else name


def package(name: str) -> str:
    """Version of an installed distribution, or "not installed"."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def describe() -> dict[str, str]:
    """The machine and the versions of what is measured."""
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": cpu_model(),
        "cores": str(os.cpu_count()),
        "memory": f"{pages / 2**30:.0f} GiB",
        "system": platform.system(),
        "compiler": compiler(),
        "python": platform.python_version(),
        "numpy": package("numpy"),
        "warp-lang": package("warp-lang"),
    }

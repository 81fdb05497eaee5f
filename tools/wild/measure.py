"""Minds the child that measures, and makes a report of what it wrote."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tools.wild import sources

ROOT = Path(__file__).resolve().parents[2]


def measure(folder: Path, log: Path, alias: str, skip: list[str], seconds: int) -> None:
    """Runs the child until it has finished; begins it again where a module ends it."""
    arguments = {"folder": str(folder), "log": str(log), "alias": alias, "skip": skip,
                 "seconds": seconds}  # fmt: skip
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(ROOT), *filter(None, [environment.get("PYTHONPATH")])]
    )
    while True:
        before = log.stat().st_size if log.exists() else 0
        child = subprocess.Popen(
            [sys.executable, "-m", "tools.wild.child", json.dumps(arguments)],
            cwd=log.parent, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=log.with_suffix(".err").open("w"),
        )  # fmt: skip
        _mind(child, log, seconds + 30)
        rows = read(log)
        if rows and rows[-1].get("finished"):
            return
        if not log.exists() or log.stat().st_size == before:
            raise RuntimeError(f"nothing was measured: see {log.with_suffix('.err')}")


def _mind(child: subprocess.Popen[bytes], log: Path, patience: int) -> None:
    """Waits for a child, and ends it where it has said nothing for too long."""
    size, since = -1, time.monotonic()
    while child.poll() is None:
        now = log.stat().st_size if log.exists() else 0
        if now != size:
            size, since = now, time.monotonic()
        elif time.monotonic() - since > patience:
            child.kill()
        try:
            child.wait(0.5)
        except subprocess.TimeoutExpired:
            continue


def read(log: Path) -> list[dict[str, Any]]:
    """The lines of a child's file."""
    if not log.exists():
        return []
    return [json.loads(line) for line in log.read_text().splitlines()]


def report(folder: Path, log: Path, skip: list[str]) -> dict[str, Any]:
    """What was measured, as data."""
    found = sources.find(folder, skip)
    rows = read(log)
    modules = [r for r in rows if r.get("kind") == "module"]
    failed = {str(found.modules[r["name"]]): r for r in modules if not r["ok"]}
    kernels = [r for r in rows if r.get("kind") == "kernel" and "file" in r]
    kernels += [
        {"name": r["name"], "file": r["name"].rsplit(":", 2)[0],
         "line": int(r["name"].rsplit(":", 2)[1]), "key": r["name"].rsplit(":", 1)[1],
         "ok": False, "adjoint": None, "generic": False, "apart": "", "cause": r["cause"],
         "place": ""}
        for r in rows if r.get("kind") == "kernel" and "file" not in r
    ]  # fmt: skip
    made = {(k["file"], k["line"]) for k in kernels}
    for k in kernels:
        if k["file"] in failed:  # nobody gets at it
            k.update(ok=False, adjoint=None, cause="its module is not imported", place=k["file"])
    unmade = 0
    for path in found.modules.values():
        for d in sources.definitions(path):
            if (d.file, d.line) in made:
                continue
            if d.nested:
                unmade += 1
                continue
            why = failed.get(d.file)
            kernels.append({
                "name": f"{d.file}:{d.line}:{d.name}", "file": d.file, "line": d.line,
                "key": d.name, "ok": False, "adjoint": None, "generic": False, "apart": d.apart,
                "cause": "its module is not imported" if why else "it was not made at import",
                "place": f"{d.file}:{d.line}",
            })  # fmt: skip
    return {"version": 1, "folder": str(folder), "modules": modules, "kernels": kernels,
            "nested_and_not_made": unmade}  # fmt: skip


_NAMED = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"")


def groups(rows: list[dict[str, Any]], cause: str = "cause", place: str = "place") -> list[Any]:
    """Failures by cause with names left out: count, cause, [(count, variant, example)]."""
    by: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by.setdefault(_NAMED.sub("…", row[cause]), []).append(row)
    out = []
    for shape, members in sorted(by.items(), key=lambda x: -len(x[1])):
        variants = Counter(m[cause] for m in members)
        examples = {m[cause]: m[place] for m in reversed(members)}
        out.append((len(members), shape, [(n, v, examples[v]) for v, n in variants.most_common()]))
    return out


def text(found: dict[str, Any], variants: int = 8) -> str:
    """The report to read."""
    modules, kernels = found["modules"], found["kernels"]
    base = str(Path(found["folder"]).parent) + os.sep
    counted = [k for k in kernels if not k.get("apart")]
    lowered = [k for k in counted if k["ok"]]
    broken = [k for k in lowered if k["adjoint"] is False]
    stood = sorted({n for m in modules for n in m.get("stood_in", ())})
    share = 100 * len(lowered) / max(len(counted), 1)
    lines = [
        f"{found['folder']}",
        f"modules imported: {sum(m['ok'] for m in modules)} of {len(modules)}",
        f"kernels lowered: {len(lowered)} of {len(counted)} ({share:.1f} %)"
        f" without tiles, volumes and textures;"
        f" adjoints fail: {len(broken)}; generic: {sum(k['generic'] for k in counted)}",
    ]
    for what in sorted({k["apart"] for k in kernels if k.get("apart")}):
        some = [k for k in kernels if k.get("apart") == what]
        lines.append(f"  with {what}: {sum(k['ok'] for k in some)} of {len(some)} lowered")
    lines.append(f"kernels in functions that no import calls: {found['nested_and_not_made']}")
    if stood:
        lines.append(f"not installed, stood in for: {', '.join(stood)}")
    for title, rows, cause, place in (
        ("modules not imported", [m for m in modules if not m["ok"]], "cause", "place"),
        ("kernels not lowered", [k for k in counted if not k["ok"]], "cause", "place"),
        ("adjoints that fail", broken, "adjoint_cause", "adjoint_place"),
    ):
        if rows:
            lines += ["", f"-- {title}, by cause"]
        for count, shape, members in groups(rows, cause, place):
            lines.append(f"{count:5}  {shape}")
            for n, variant, example in members[:variants]:
                lines.append(f"         {n:4} {variant}  [{example.replace(base, '')}]")
            if len(members) > variants:
                lines.append(f"              and {len(members) - variants} more")
    return "\n".join(lines) + "\n"

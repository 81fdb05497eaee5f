"""Kernels of a folder on the engine and on Warp, one after the other; what differs is judged."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tools.wild.arguments import STYLES

# Entries that are looked at where gradients differ.
ENTRIES = 6

ROOT = Path(__file__).resolve().parents[2]
Arrays = dict[str, "np.ndarray[Any, Any]"]


class Server:
    """One side: a process that has the modules imported."""

    def __init__(
        self, name: str, python: str, options: dict[str, Any], scratch: Path,
        program: Sequence[str] = ("-m", "tools.wild.side"),
    ) -> None:  # fmt: skip
        environment = {**os.environ, "WARP_CACHE_PATH": str(scratch / "warp-cache")}
        path = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment["PYTHONPATH"] = os.pathsep.join(path)
        self.answer = scratch / f"{name}.pickle"
        with (scratch / f"{name}.err").open("w") as errors:
            self.process = subprocess.Popen(
                [python, *program, name, json.dumps(options)], cwd=scratch, env=environment,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
            )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError((scratch / f"{name}.err").read_text()[-2000:])
        self.kernels: list[str] = json.loads(line)

    def ask(self, task: dict[str, Any]) -> dict[str, Any]:
        """What becomes of a task; `ok` says whether it was done."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps({**task, "answer": str(self.answer)}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("a side has ended")
        said: dict[str, Any] = json.loads(line)
        if said["ok"]:
            said = pickle.loads(self.answer.read_bytes())
        return said

    def close(self) -> None:
        """Ends the process."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


def compare(here: Server, there: Server, kernel: str, seconds: int) -> dict[str, Any]:
    """A row of the results: what happened to a kernel, and who was right.

    Where that cannot be decided, other arguments have their say: some lead to numbers so large
    that no difference is seen beside them.
    """
    row = _compared(here, there, kernel, seconds, 0)
    if "undecided" in (row.get("forward"), row.get("gradient")):
        for first in range(row["style"] + 1, len(STYLES)):
            other = _compared(here, there, kernel, seconds, first)
            if other["state"] == "ran" and "undecided" not in (other["forward"], other["gradient"]):
                return other
    return row


def _compared(here: Server, there: Server, kernel: str, seconds: int, first: int) -> dict[str, Any]:
    base = {"kernel": kernel, "seed": 1, "seconds": seconds, "first": first}
    planned = here.ask({**base, "do": "plan"})
    if not planned["ok"]:
        return {"kernel": kernel, "state": "not planned", "cause": planned["cause"]}
    if "skip" in planned:
        return {"kernel": kernel, "state": "skipped", "cause": planned["skip"],
                "why": planned.get("why", "")}  # fmt: skip
    task = {**base, **planned, "do": "run"}
    rows, refused = {}, ""
    for name, server in (("here", here), ("there", there)):
        rows[name] = server.ask(task)
        if name == "here" and not rows[name]["ok"]:  # the gradient may be what is refused
            refused = rows[name]["cause"]
            task["backward"] = False
            rows[name] = server.ask(task)
        if not rows[name]["ok"]:
            where = "here" if name == "here" else "in Warp"
            return {
                "kernel": kernel,
                "state": f"does not run {where}",
                "cause": rows[name]["cause"],
            }
    row: dict[str, Any] = {"kernel": kernel, "state": "ran", "style": task["style"]}
    row["seconds"] = [round(rows[n]["seconds"], 2) for n in ("here", "there")]
    row["forward"] = _forward(here, task, rows["here"]["after"], rows["there"]["after"], row)
    if refused:
        row["gradient"], row["cause"] = "refused", refused
    elif not rows["here"]["grads"]:
        row["gradient"] = "none"
    elif row["forward"] not in ("equal", "right here"):
        row["gradient"] = "not compared"
    else:
        given, other = rows["here"]["grads"], rows["there"]["grads"]
        row["gradient"] = _gradient(here, task, given, other, row)
    return row


def _far(a: Any, b: Any, relative: float, of_scale: float) -> Any:
    """How far apart two arrays are, in units of what is allowed."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    finite = np.concatenate([np.abs(x[np.isfinite(x)]).ravel() for x in (a, b)])
    scale = float(finite.max()) if finite.size else 0.0
    with np.errstate(all="ignore"):
        allowed = relative * np.maximum(np.abs(a), np.abs(b)) + of_scale * scale + 1e-30
        far = np.abs(a - b) / allowed
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, 0.0, np.where(np.isfinite(far), far, np.inf))


def _forward(here: Server, task: Any, a: Arrays, b: Arrays, row: dict[str, Any]) -> str:
    if all(_far(a[k], b[k], 1e-3, 1e-5).max(initial=0.0) <= 1.0 for k in a):
        return "equal"
    said = here.ask({**task, "do": "decide", "what": "forward"})
    if not said["ok"]:
        row["undecided"] = said["cause"]
        return "undecided"
    exact = said["after"]
    right = [
        all(_far(x[k], exact[k], 1e-2, 1e-3).max(initial=0.0) <= 1.0 for k in x if k in exact)
        for x in (a, b)
    ]
    verdict = {(True, True): "equal", (True, False): "right here", (False, True): "right there"}
    return verdict.get((right[0], right[1]), "undecided")


def _gradient(here: Server, task: Any, a: Arrays, b: Arrays, row: dict[str, Any]) -> str:
    apart: list[tuple[float, str, tuple[int, ...]]] = []
    for leaf in a:
        other = b.get(leaf)
        far = _far(a[leaf], np.zeros_like(a[leaf]) if other is None else other, 2e-3, 2e-5)
        apart += [(float(far[i]), leaf, i) for i in zip(*np.nonzero(far > 1.0), strict=True)]
    row["entries"] = len(apart)
    if not apart:
        return "equal"
    apart.sort(key=lambda x: -x[0])
    chosen = [(leaf, [int(k) for k in index]) for _, leaf, index in _spread(apart)]
    said = here.ask({**task, "do": "decide", "what": "gradient", "entries": chosen})
    if not said["ok"]:
        row["undecided"] = said["cause"]
        return "undecided"
    marks, table = set(), []
    for (leaf, index), slopes in zip(chosen, said["slopes"], strict=True):
        at = tuple(index)
        pair = float(a[leaf][at]), float(b[leaf][at]) if leaf in b else 0.0
        scale = max(float(np.nanmax(np.abs(a[leaf]), initial=0.0)), abs(slopes[-1][0]))
        marks.add(mark := judged(pair, slopes, scale))
        table.append([leaf, index, *pair, slopes[-1][0], mark])
    row["table"] = table[:4]
    for found in ("undecided", "right there", "right here", "kink"):
        if found in marks:
            if found == "right here" and "right there" in marks:
                return "undecided"
            return found
    return "equal"


def _spread(apart: Sequence[tuple[float, str, tuple[int, ...]]]) -> list[Any]:
    """The worst entries, at least one of each leaf as far as there is room."""
    first: dict[str, Any] = {}
    for x in apart:
        first.setdefault(x[1], x)
    chosen = list(first.values())[:ENTRIES]
    return chosen + [x for x in apart if x not in chosen][: ENTRIES - len(chosen)]


def judged(pair: tuple[float, float], slopes: Any, scale: float) -> str:
    """Who is right at an entry. slopes: central and one-sided ones, for ever smaller steps."""
    pairs = [(slopes[k], slopes[k + 1]) for k in range(len(slopes) - 1)]
    # Where the step is too wide, or too narrow for rounding, two of them agree less.
    (wide, *_), (near, forth, back, noise) = min(pairs, key=lambda p: abs(p[0][0] - p[1][0]))
    if not np.isfinite([wide, near, forth, back, noise]).all():
        return "undecided"
    if noise > 1e-2 * max(abs(near), *(abs(g) for g in pair if np.isfinite(g))):
        return "undecided"  # beside outputs that large, nothing is seen of it
    allowed = 5e-3 * abs(near) + 1e-4 * scale + 2.0 * abs(wide - near)
    right = [abs(g - near) <= allowed for g in pair]
    if abs(wide - near) > 0.05 * abs(near) + 1e-3 * scale or not any(right):
        # At a kink every slope between the one-sided ones is one.
        low, high = min(forth, back) - allowed, max(forth, back) + allowed
        if abs(forth - back) <= 1e-2 * abs(near) + 1e-3 * scale:
            return "undecided"
        right = [low <= g <= high for g in pair]
        if all(right):
            return "kink"
    if all(right):
        return "rounding"
    return "right here" if right[0] else "right there" if right[1] else "undecided"


def versions(python: str) -> dict[str, str]:
    """Versions of what takes part, as an interpreter has them installed."""
    text = (
        "import importlib.metadata as m, json, platform; print(json.dumps({'python': "
        "platform.python_version(), **{d.metadata['Name']: d.version for d in m.distributions()}}))"
    )
    done = subprocess.run([python, "-c", text], capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


def main_loop(
    folder: Path, results: Path, scratch: Path, pythons: tuple[str, str], options: dict[str, Any]
) -> None:
    """Adds a row for each kernel that has none yet; with `retry`, replaces those of that state."""
    rows = {}
    if results.exists():
        rows = {r["kernel"]: r for r in map(json.loads, results.read_text().splitlines())}
    told = {"folder": str(folder), "skip": options["skip"], "seconds": 120}
    here = Server("engine", pythons[0], told, scratch)
    there = Server("warp", pythons[1], told, scratch)
    known = set(there.kernels)
    wanted = [k for k in here.kernels if k not in rows]
    if options.get("retry"):
        wanted = [k for k in here.kernels if rows.get(k, {}).get("state") == options["retry"]]
        kept = [r for k, r in rows.items() if k not in wanted]
        results.write_text("".join(json.dumps(r) + "\n" for r in kept))
    with results.open("a") as out:
        for kernel in wanted:
            if kernel in known:
                row = compare(here, there, kernel, options["seconds"])
            else:
                row = {"kernel": kernel, "state": "not there in Warp", "cause": ""}
            out.write(json.dumps(row) + "\n")
            out.flush()
            print(row["state"], row.get("forward", ""), row.get("gradient", ""), kernel,
                  file=sys.stderr, flush=True)  # fmt: skip
    here.close()
    there.close()

"""The results of kernels of other packages and of reported faults, as data and as a page."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

HEAD = """# Evidence

`tools/make_evidence.py` makes this page from measurements; each table names the versions and tools.

## Kernels of other packages, beside Warp

Each kernel of a package runs on the engine and on Warp, with the same random arguments, and both
compute its gradients from the same random cotangents. If the two differ, finite differences of the
float64 form of the kernel decide. They run in the interpreter of the typed IR, which shares neither
generated code nor adjoints with the engine and Warp. A gradient is *equal* if the two differ by
rounding only, and at a *kink* if both lie between the one-sided slopes.
`tools/compare_with_warp.py FOLDER` repeats this.
"""
LEFT_OUT = """
Kernels that did not run are left out; `docs/evidence.json` gives the reasons. Random arguments
cannot be handles of meshes or grids, and with random arguments some kernels access elements outside
of every array.
"""
PROGRAMS = """
## Whole programs of other packages, beside Warp

Each program runs unchanged, on the engine under the alias and on Warp. The comparison covers all
arrays, gradients and numbers that its globals refer to at the end, and its output.

- *furthest* is the largest difference, relative to the largest number in its array.
- If it is over 1e-5, the same program also runs with float64 everywhere. The columns *here* and *in
  Warp* give the distance of each from that run (the root mean square, in the array that differs
  most). *alike* means within a factor of four.
- *lost* counts arrays of which rounding leaves nothing in either run (forces that cancel).
- Gradients count if they are not zero, with their values before a tape cleared them. The float64
  run uses the adjoints of the engine too. `adtool check`, which compares each launch and the whole
  tape with differences, shows that these are right.
- *filled* counts arrays that the tape fills before it reads them. Here the gradient by their
  previous contents is zero; in Warp it is the gradient by the new contents.

`tools/compare_programs.py tools/programs.txt` repeats this.

| program | equal bit by bit | furthest | of gradients | here | in Warp | verdict of float64 |
|---|---|---|---|---|---|---|
"""
UNABLE = """
These did not run on both:

| program | why |
|---|---|
"""
SAID = {"equal": "", "rounding": "", "alike": "alike", "here": "nearer here",
        "there": "nearer in Warp", "lost": "", "undecided": "undecided"}  # fmt: skip
REPORTED = """
## Faults that users of Warp reported

For each report, `tests/programs/reported` has a program of ours with the same structure. On the
engine, each gradient is right, or a finding says that it was taken at other values than those of
the launch. The last column lists the findings of `adtool check --alias warp`; it is empty if there
are none. The column "Warp {version}" gives the result of the same program on Warp today.

| report | subject | what went wrong | Warp {version} | `adtool check` |
|---|---|---|---|---|
"""


def summary(results: Path, versions: dict[str, str]) -> dict[str, Any]:
    """The counts of a file of results of one package."""
    rows = [json.loads(x) for x in results.read_text().splitlines()]
    ran = [r for r in rows if r["state"] == "ran"]
    name = results.stem
    left: Counter[str] = Counter()
    for r in rows:
        if r["state"] != "ran":
            left[r["cause"] if r["state"] == "skipped" else r["state"]] += 1
    differ = [
        {"kernel": r["kernel"], "forward": r["forward"], "gradient": r["gradient"],
         "worst": (r.get("table") or [None])[0], "cause": r.get("cause") or r.get("undecided", "")}
        for r in ran if r["forward"] != "equal" or r["gradient"] not in ("equal", "none")
    ]  # fmt: skip
    return {
        "package": name, "version": versions.get(name, ""), "kernels": len(rows), "ran": len(ran),
        "forward": dict(Counter(r["forward"] for r in ran)),
        "gradient": dict(Counter(r["gradient"] for r in ran)),
        "left_out": dict(left.most_common()), "differ": differ,
    }  # fmt: skip


def lowered(measured: Path) -> dict[str, Any]:
    """The counts of a file of `measure_sources.py --json`."""
    found = json.loads(measured.read_text())
    counted = [k for k in found["kernels"] if not k.get("apart")]
    return {
        "package": Path(found["folder"]).name,
        "modules": [sum(m["ok"] for m in found["modules"]), len(found["modules"])],
        "kernels": [sum(k["ok"] for k in counted), len(counted)],
        "apart": len(found["kernels"]) - len(counted),
    }


def there(program: Path, python: str) -> str:
    """The result of a program on Warp: right, wrong, or fails."""
    done = subprocess.run(
        [python, program.name], cwd=program.parent, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    if done.returncode:
        return "fails"
    rows = {x.split()[0]: x.split()[1:] for x in done.stdout.splitlines() if x.split()}
    found = [float(x) for x in rows["gradient"]]
    right = [float(x) for x in rows.get("exact", rows.get("told", []))]
    pairs = zip(found, right, strict=True)
    return "right" if all(abs(a - b) <= 2e-4 * max(1.0, abs(b)) for a, b in pairs) else "wrong"


def facts(program: Path) -> dict[str, str]:
    """Issue, title and expected findings of a reported program, from its text."""
    text = program.read_text(encoding="utf-8")
    title, _, issue, *rest = text.split('"""')[1].strip().splitlines()
    codes = re.findall(r"# expect: (?:(warning|note)\[)?(G\d{3})", text)
    said = sorted({f"{code} ({severity or 'error'})" for severity, code in codes})
    return {
        "issue": issue.removeprefix("Issue: "), "title": title,
        "was": " ".join(rest).removeprefix("There: "), "said": ", ".join(said),
    }  # fmt: skip


def program_rows(results: Path) -> list[dict[str, Any]]:
    """The rows of a file of results of `compare_programs.py`."""
    return [json.loads(x) for x in results.read_text().splitlines()]


def program_tables(rows: list[dict[str, Any]]) -> str:
    """The tables of whole programs."""
    ran, not_run = [], []
    for r in rows:
        name = f"`{r['program']}`"
        if r["state"] != "ran":
            here, there = r["here"], r["there"]
            why = here if not there else f"here: {here or 'runs'}; in Warp: " + (
                "the same" if there == here else there
            )  # fmt: skip
            not_run.append(f"| {name} | {r.get('note') or why} |")
            continue
        far = f"{r['furthest']:.0e}" if r["furthest"] else "0"
        judged = [x for x in r.get("table", []) if x[4] != "lost"]
        here, there = (f"{x:.0e}" for x in judged[0][2:4]) if judged else ("", "")
        count = r["gradients"]
        gradient = f"{r['furthest gradient']:.0e} of {count}".replace("0e+00", "0") if count else ""
        said = [SAID[r["verdict"]], *_counts(r.get("marks", {}), "lost")]
        marks = ", ".join(_counts(r.get("gradient marks", {}), *SAID, "filled"))
        said.append(f"gradients: {marks}" if marks else "")
        said.append(r.get("note", ""))
        cells = [far, gradient, here, there, "; ".join(filter(None, said))]
        ran.append(f"| {name} | {r['equal']} of {r['values']} | " + " | ".join(cells) + " |")
    out = PROGRAMS + "\n".join(ran) + "\n"
    return out + (UNABLE + "\n".join(not_run) + "\n" if not_run else "")


def _counts(marks: dict[str, int], *wanted: str) -> list[str]:
    """The counts of these marks, in words."""
    return [f"{marks[m]} {SAID.get(m) or m}" for m in wanted if marks.get(m)]


def page(data: dict[str, Any], programs: list[Path]) -> str:
    """docs/evidence.md."""
    out = [HEAD]
    v = data["versions"]
    out.append(f"Run with {', '.join(f'{n} {x}' for n, x in sorted(v.items()))}.\n")
    out.append(
        "| package | kernels that ran | forward equal | right here | right in Warp | undecided |"
    )
    out.append("|---|---|---|---|---|---|")
    for p in data["packages"]:
        f = p["forward"]
        out.append(f"| {p['package']} {p['version']} | {p['ran']} of {p['kernels']} | "
                   f"{f.get('equal', 0)} | {f.get('right here', 0)} | {f.get('right there', 0)} | "
                   f"{f.get('undecided', 0)} |")  # fmt: skip
    total = Counter[str]()
    heads = "gradients equal | kinks | right here | right in Warp | undecided | refused here"
    out.append(f"\n| package | {heads} |")
    out.append("|---|---|---|---|---|---|---|")
    columns = ("kink", "right here", "right there", "undecided", "refused")
    for p in data["packages"]:
        g = Counter(p["gradient"])
        g["equal"] += g.pop("rounding", 0)
        total.update(g)
        cells = " | ".join(str(g[c]) for c in ("equal", *columns))
        out.append(f"| {p['package']} | {cells} |")
    out.append("| together | " + " | ".join(str(total[c]) for c in ("equal", *columns)) + " |")
    out.append(LEFT_OUT)
    if data["lowered"]:
        out += ["## Packages that run unchanged", "",
                "`tools/measure_sources.py FOLDER` imports every module, and lowers every kernel "
                "with its adjoint. The last column counts kernels with tiles, volumes and "
                "textures.", "",
                "| package | modules imported | kernels lowered | with tiles and similar |",
                "|---|---|---|---|"]  # fmt: skip
        for p in data["lowered"]:
            (a, b), (c, d) = p["modules"], p["kernels"]
            out.append(f"| {p['package']} | {a} of {b} | {c} of {d} | {p['apart']} |")
    if data.get("programs"):
        out.append(program_tables(data["programs"]).rstrip("\n"))
    out.append(REPORTED.format(version=data["reported"]["version"]).rstrip("\n"))
    for program in programs:
        f = facts(program)
        link = f"[#{f['issue']}](https://github.com/NVIDIA/warp/issues/{f['issue']})"
        verdict = data["reported"]["programs"].get(program.stem, "not run")
        out.append(f"| {link} | {f['title']} | {f['was']} | {verdict} | {f['said']} |")
    return "\n".join(out) + "\n"

"""The benchmarks run on `engine` at small sizes, without peers, and their page can be written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import running, scaling
from benchmarks.__main__ import main
from benchmarks.cases import CASES
from benchmarks.gpu.cases import GPU_CASES, SIZES
from benchmarks.gpu.testing import counts
from benchmarks.measuring import ALIKE, Plan, measure, relative_gap, spread
from benchmarks.page import markdown
from benchmarks.peers import Failure, Peer, placeless
from benchmarks.recording import Recording
from benchmarks.targets import Target, at_most, faster, judge, slower_than, times
from benchmarks.verdicts import judge_all, missed, targets

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benchmarks"
QUICK = Plan(rounds=2, seconds=0.001, most=0.1, least=1)


def test_every_case_runs() -> None:
    commands: list[dict[str, object]] = []
    for case in CASES:
        commands.append({"make": case.name, "size": case.quick})
        commands.append({"time": "forward", "repeat": 1, "inner": 1})
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.worker"],
        input="".join(json.dumps(c) + "\n" for c in commands),
        env={**os.environ, "BENCH_FRAMEWORK": "engine", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(commands)
    for command, made, took in zip(commands[::2], answers[::2], answers[1::2], strict=True):
        assert "error" not in made, (command, made)
        assert all(magnitude > 0.0 for _, magnitude in made["outputs"] + made["gradients"])
        assert len(took) == 1
        assert took[0] > 0.0


def test_a_run_writes_data_page_and_plots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(scaling, "ELEMENTS", (100, 1000))
    monkeypatch.setattr(scaling, "LAUNCHES", (1, 10))
    rows = ["launch", "saxpy", "memory", "scaling"]
    assert main([*rows, "--quick", "--peers", "none", "--out", str(tmp_path)]) == 0
    data = json.loads((tmp_path / "full.json").read_text(encoding="utf-8"))
    assert [r["name"] for r in data["rows"]] == ["launch", "saxpy", "memory"]
    for row in data["rows"]:
        assert row["failed"] == {}
        for one in row["passes"]:
            assert one["times"]["engine"]["median"] > 0.0
            assert one["verdict"] in ("met", "missed", "alone")
    assert {c["name"] for c in data["curves"]} == {"saxpy", "elementwise", "launches"}
    page = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert "| `z = a*x + y` | 100,000 | forward |" in page
    assert "no warp" in page  # the target could not be judged
    for name in ("peers", "cost"):
        assert (tmp_path / f"{name}.svg").exists() == (name == "cost")  # there are no peers
    assert sorted(p.name for p in tmp_path.iterdir() if p.suffix == ".json") == ["full.json"]
    printed = capsys.readouterr().out
    assert printed.splitlines()[0].split()[:2] == ["launch", "forward"]


def test_names_are_listed_and_unknown_ones_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == list(running.ROWS)
    with pytest.raises(SystemExit):
        main(["no_such_row"])
    assert "--list" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["launch", "--peers", "nobody"])
    assert "nobody" in capsys.readouterr().err


class Scripted(Peer):
    """A peer that answers as it is told, without a process."""

    def __init__(self, name: str, answers: dict[str, Any]) -> None:
        self.framework, self.answers = name, answers

    def ask(self, command: dict[str, Any], limit: float = 0.0) -> Any:
        for key, answer in self.answers.items():
            if key in command:
                if isinstance(answer, Exception):
                    raise answer
                return answer
        return None


MADE = {"outputs": [[1.0, 1.0]], "gradients": [[2.0, 2.0]], "passes": ["forward", "backward"]}
PACE = {"inner": 1, "repeat": 1, "once": 0.001}


def test_a_peer_that_fails_is_reported_and_the_others_are_measured() -> None:
    peers = {
        "engine": Scripted("engine", {"make": MADE, "pace": PACE, "time": [0.002]}),
        "warp": Scripted("warp", {"make": MADE, "pace": PACE, "time": Failure("no answer")}),
        "jax": Scripted("jax", {"make": Failure("no such function")}),
        "numba": Scripted("numba", {"make": {"cannot": True, "passes": []}}),
        "torch": Scripted("torch", {"make": MADE, "pace": PACE, "time": [0.001]}),
    }
    case = next(c for c in CASES if c.name == "nbody")
    row = measure(case, 10, peers, QUICK)
    assert row["failed"] == {"warp": "no answer", "jax": "no such function"}
    assert row["cannot"] == ["numba"]
    assert [set(p["times"]) for p in row["passes"]] == [{"engine", "torch"}] * 2
    result: dict[str, Any] = {"machine": {"cpu": "c"}, "rows": [row]}
    judge_all(result)
    assert [p["verdict"] for p in row["passes"]] == ["missed"] * 2
    page = markdown(result)
    assert "| 2 ms ±0% | failed | failed | 1 ms (0.5x) |" in page
    said = missed(result)
    assert "n-body, dynamic loop: warp failed (no answer)" in said
    assert any("slower than torch (0.5x)" in line for line in said)


def test_a_worker_that_is_silent_or_dies_is_started_again() -> None:
    with Peer("engine") as peer:
        with pytest.raises(Failure, match=r"no answer in 0\.001 s"):
            peer.ask({"load": True}, limit=0.001)
        with pytest.raises(Failure, match="no case was made"):
            peer.ask({"time": "forward", "repeat": 1})
        assert "saxpy" in peer.ask({"load": True})["rows"]


def test_messages_name_no_folders() -> None:
    said = "OSError: '/tmp/some/where/x.so': no such file, 3 µs / 4 µs"
    assert placeless(said) == "OSError: 'x.so': no such file, 3 µs / 4 µs"


def test_a_framework_that_is_missing_is_named() -> None:
    absent = Scripted("warp", {"load": Failure("ModuleNotFoundError: No module named 'warp'")})
    _, missing = running.load_all({"warp": absent}, 1.0)
    assert missing == {"warp": "ModuleNotFoundError: No module named 'warp'"}
    page = markdown({"machine": {"cpu": "c"}, "rows": [], "missing": missing})
    assert "Not measured: warp: ModuleNotFoundError" in page


def row_of(**medians: float) -> dict[str, Any]:
    return {"times": {n: spread([t * 0.99, t, t * 1.01]) for n, t in medians.items()}}


@pytest.mark.parametrize(
    ("target", "row", "met", "found"),
    [
        (faster(3), row_of(engine=1.0, warp=3.5), True, "3.5x"),
        (faster(3), row_of(engine=1.0, warp=2.5), False, "2.5x"),
        (faster(3), row_of(engine=1.0), None, "no warp"),
        (times(1.3, "c++"), row_of(engine=1.2, **{"c++": 1.0}), True, "1.20x"),
        (times(1.3, "c++"), row_of(engine=1.4, **{"c++": 1.0}), False, "1.40x"),
        (times(1.0, "row launch"), row_of(engine=2.0), True, "0.50x"),
        (at_most(2e-6), row_of(engine=1.9e-6), True, ""),
        (at_most(2e-6), row_of(engine=2.1e-6), False, ""),
        (Target("bytes", 1024), row_of(engine=2000.0), False, "2000 B"),
        (Target("bandwidth", 0.8), row_of(engine=1.0) | {"share": 0.85}, True, "85%"),
        (Target("bandwidth", 0.8), row_of(engine=1.0), None, ""),
    ],
)
def test_targets_are_judged(
    target: Target, row: dict[str, Any], met: bool | None, found: str
) -> None:
    others = {"launch": spread([4.0])}
    verdict = judge(target, row, others)
    assert (verdict.met, verdict.found) == (met, found)
    assert not verdict.close


def test_what_the_scatter_decides_is_marked() -> None:
    assert judge(faster(3), row_of(engine=1.0, warp=2.99), {}).close
    assert not judge(faster(3), row_of(engine=1.0, warp=2.5), {}).close


def test_peers_count_as_peers_but_loops_by_hand_do_not() -> None:
    behind = slower_than(row_of(engine=2.0, warp=3.0, jax=1.0, **{"c++": 0.5}))
    assert [v.target for v in behind] == ["1x jax"]


def test_what_is_not_finite_differs() -> None:
    nan = float("nan")
    assert relative_gap([[1.0, 2.0]], [[1.0, 2.0]]) == 0
    assert relative_gap([[1.0, 2.0], [1.0, 2.0]], [[nan, nan], [1.0, 2.0]]) == 1 > ALIKE
    assert relative_gap([[1.0, 2.0], [1.0, 2.0]], [[1.0, 2.0], [nan, nan]]) == 1


def test_targets_name_passes_that_there_are() -> None:
    names = {c.name: c.passes for c in CASES}
    starts = dict.fromkeys(("start", "first", "first_gradient"), ("cold", "warm"))
    known = {**starts, "memory": ("record",)}
    for (row, which), given in targets().items():
        assert which in (names | known)[row]
        assert given


def test_parts_of_rows_are_told_and_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    def row(name: str, **times: float) -> dict[str, Any]:
        return {
            "name": name, "title": f"a {name}", "group": "starts", "size": 0, "note": "",
            "unit": "s", "cannot": [], "failed": {},
            "passes": [{"pass": "warm", "gaps": {}, **row_of(**times)}],
        }  # fmt: skip

    monkeypatch.setattr("benchmarks.verdicts.reasons", lambda: {"first/warm": "It does not."})
    behind = {"engine": 2.0, "warp": 3.0, "jax": 1.0}
    rows = [row("first", **behind), row("start", **behind),
            row("first_gradient", engine=2.0, warp=1.0)]  # fmt: skip
    result: dict[str, Any] = {"machine": {"cpu": "c"}, "rows": rows}
    judge_all(result)
    assert [r["passes"][0]["verdict"] for r in rows] == ["met", "missed", "ahead"]
    page = markdown(result)
    missed, told = page.split("## Parts of rows in which a peer is faster")
    assert "- a first, warm: slower than jax (0.5x). It does not." in told
    assert "- a start, warm: slower than jax (0.5x)." in missed and "- a first, warm" not in missed
    assert "- a first_gradient, warm: slower than warp (0.5x)." in told


def test_reasons_are_kept_beside_rows_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {
        "name": "saxpy", "title": "a row", "group": "kernels", "size": 1000, "note": "a note",
        "unit": "s", "cannot": [], "failed": {},
        "passes": [{"pass": "forward", "gaps": {"warp": 0.5},
                    **row_of(engine=0.002, warp=0.004)}],
    }  # fmt: skip
    monkeypatch.setattr("benchmarks.verdicts.reasons", lambda: {"saxpy/forward": "It waits."})
    result: dict[str, Any] = {"machine": {"cpu": "c"}, "rows": [row]}
    judge_all(result)
    page = markdown(result)
    assert "| a row | 1,000 | forward | 2 ms ±1% | 4 ms (2x) |  | 3x warp (2x): **missed**" in page
    assert "- a row, forward: wanted 3x warp: 2x. It waits." in page
    assert "- a row: a note." in page
    assert "- a row, forward: warp by 5e-01" in page
    kept = json.loads((FOLDER / "reasons.json").read_text(encoding="utf-8"))
    known = {f"{c.name}/{p}" for c in CASES for p in c.passes}
    assert [k for k in kept if "/" in k and k not in known and k.split("/")[0] in names()] == []


def names() -> set[str]:
    return {c.name for c in CASES}


def test_loops_by_hand_compute_what_kernels_do() -> None:
    with Peer("engine") as ours, Peer("c++", quiet=True) as hand:
        try:
            able = hand.ask({"load": True})["rows"]
        except Failure as e:
            pytest.skip(f"no C++ compiler with OpenMP: {e}")
        assert "stencil" in able
        for case in (c for c in CASES if c.name in able):
            row = measure(case, case.quick, {"engine": ours, "c++": hand}, QUICK)
            assert row["failed"] == {}, case.name
            assert [p["pass"] for p in row["passes"]] == ["forward", "backward"]
            gaps = [p["gaps"]["c++"] for p in row["passes"]]
            assert max(gaps) < 1e-4, (case.name, gaps)


def test_rows_are_put_in_place_of_those_on_record(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    case = CASES[0]
    peer = {"engine": Scripted("engine", {"make": MADE, "pace": PACE, "time": [0.002]})}
    for size in (1, 2, 3):
        recording.add(measure(case, size, peer, QUICK) | {"name": f"r{size % 2}"})
    assert [r["size"] for r in recording.result["rows"]] == [3, 2]
    again = Recording(tmp_path)
    recording.put("machine", {"cpu": "c"})
    recording.finish()
    again.reload()
    assert again.result == recording.result
    assert not list(tmp_path.glob("running*"))


def test_results_on_record_name_no_place() -> None:
    """Pages and data hold no paths of the machine that they were measured on."""
    for path in (FOLDER / "RESULTS.md", *(FOLDER / "results").glob("*.json")):
        text = path.read_text(encoding="utf-8")
        assert str(Path.home()) + "/" not in text
        assert "/tmp/" not in text


@pytest.mark.sweep  # it takes 40 seconds
def test_the_cost_of_watching_can_be_measured() -> None:
    from benchmarks import tracking

    text = tracking.page(1, quick=True)
    assert text.count("\n| ") == 3 + len(tracking.programs()) + 2
    assert "roll-out, an array a step | 20 x 64 |" in text and "nan" not in text


@pytest.mark.parametrize("apart", [False, True])
def test_kernels_of_a_package_are_compiled_by_phases(
    apart: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import argparse

    from benchmarks import compile_real

    folder = tmp_path / "some"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "kernels.py").write_text(
        "import warp as wp\n\n\n@wp.kernel\ndef twice(x: wp.array(dtype=float)):\n"
        "    i = wp.tid()\n    x[i] = x[i] * x[i]\n"
    )
    monkeypatch.setitem(compile_real.PACKAGES, "some", [])
    rows: dict[str, dict[str, object]] = {}
    options = argparse.Namespace(
        peer=False, only=[], every=0, keep=None, seconds=60, results=tmp_path / "r.jsonl",
        apart=apart, others=apart,
    )  # fmt: skip
    compile_real.measure("some", folder, options, rows)
    (row,) = rows.values()
    assert json.loads(options.results.read_text()) == row
    said = row["engine"]
    assert isinstance(said, dict) and said["ok"] and said["form"] == "recorded"
    assert set(said["phases"]) == set(compile_real.PHASES)
    assert all(("g++" in said[form]) is apart for form in ("forward", "adjoint"))
    assert compile_real.summary([row]).startswith("1 kernels: engine")
    assert (said.get("others", 0.0) > 0) is apart
    assert compile_real.line(row).startswith("twice: ")
    assert compile_real.folder_of("no_such_package") is None


def test_rows_of_gpus_run_on_an_emulated_one(tmp_path: Path) -> None:
    rows = ["saxpy", "captured"]
    given = ["--device", "emulated", "--quick", "--seconds", "200", "--out", str(tmp_path)]
    assert main([*rows, *given]) == 0
    data = json.loads((tmp_path / "cuda.json").read_text(encoding="utf-8"))
    assert [r["name"] for r in data["rows"]] == rows and not data["missing"]
    assert all(r["failed"] == {} and len(r["passes"]) == 2 for r in data["rows"])
    page = (tmp_path / "CUDA.md").read_text(encoding="utf-8")
    assert "gpu: emulated" in page and "| `z = a*x + y` | 100,000 | backward |" in page
    assert os.environ.get("BENCH_DEVICE") is None


def test_rows_of_gpus_name_rows_of_the_cpu() -> None:
    known = {c.name for c in CASES}
    assert set(SIZES) <= known and {c.name for c in GPU_CASES} - known == {"graph"}


def test_what_came_of_tests_is_read_from_their_report(tmp_path: Path) -> None:
    report = tmp_path / "r.xml"
    assert counts(report) == {"passed": 0, "failed": [], "skipped": {}}
    report.write_text(
        '<testsuites><testsuite><testcase classname="tests.a" name="good"/>'
        '<testcase classname="tests.a" name="bad">'
        '<failure message="/x/y.py: no&#10;more"/></testcase>'
        '<testcase classname="tests.a" name="out"><skipped message="no GPU"/></testcase>'
        "</testsuite></testsuites>",
        encoding="utf-8",
    )
    failed = [{"test": "a::bad", "why": "y.py: no"}]
    assert counts(report) == {"passed": 1, "failed": failed, "skipped": {"no GPU": 1}}

"""`.adtool/last` keeps the last checked run, whatever has run since."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from adtool.cli import main

SCRIPT = """
import engine as wp

@wp.func
def double(x: float):
    return 2.0 * x

@wp.func_grad(double)
def adj_double(x: float, adj_ret: float):
    wp.adjoint[x] += {factor} * adj_ret

@wp.kernel
def {kernel}(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = double(x[i])

x = wp.ones(4, requires_grad=True)
y = wp.zeros(4, requires_grad=True)
with wp.Tape() as tape:
    wp.launch({kernel}, 4, [x], [y])
tape.backward(grads={{y: wp.ones(4)}})
"""

Run = Callable[..., tuple[int, str]]

# Commands that check, and the script whose check is then the last one.
CHECKING = {
    "check wrong.py": "wrong",
    "graph --out run.dot wrong.py": "wrong",
    "report --html run.html right.py": "right",
    "baseline write wrong.py": "wrong",
}
# Commands that check nothing, or come to nothing.
OTHERS = (
    "trace right.py", "jacobian --kernel right right.py", "graph --no-check right.py",
    "capture --out run.adt right.py", "show wrong.py wrong", "check raises.py", "check empty.py",
    "graph", "report --html view.html",
)  # fmt: skip


# Those of them that check, and come to nothing.
LATER = {
    "raises.py": "the script ended by sys.exit(3) at raises.py:",
    "empty.py": "nothing was checked: the script made no tape",
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs the tool in a folder with scripts; the exit code and all that it printed."""
    monkeypatch.chdir(tmp_path)
    for kernel, factor in (("right", "2.0"), ("wrong", "3.0")):
        text = SCRIPT.format(kernel=kernel, factor=factor)
        Path(f"{kernel}.py").write_text(text)
    Path("raises.py").write_text(text + "raise SystemExit(3)")
    Path("empty.py").write_text("")

    def call(*words: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main(list(words))
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return int(ended.value.code or 0), out + err

    return call


def seen(run: Run, script: str, later: bool = False) -> None:
    """Both views show that script's check, or say that there was none and what to run.

    later: whether other checks came after it, of which both views tell.
    """
    views = {
        "graph": run("graph", "--failing", "--out", "view.dot"),
        "report": run("report", "--html", "view.html"),
    }
    if not script:
        for code, text in views.values():
            assert code == 2
            assert "so nothing was checked here" in text
            assert "run `adtool check SCRIPT`" in text
        return
    assert views["graph"][0] == views["report"][0] == 0, views
    failed = script == "wrong"
    assert ("first problem: launch 0:0 of kernel `wrong`: G001" in views["graph"][1]) == failed
    assert ("no check failed" in views["graph"][1]) == (not failed and not later)
    assert ("no problem is known" in views["graph"][1]) == (not failed and later)
    page = Path("view.html").read_text()
    for name, why in LATER.items():
        note = f"a later check of `{name}` gave no result to show: {why}"
        assert [f"note: {note}" in text for _, text in views.values()] == [later, later]
        assert (note.replace(f"`{name}`", f"<code>{name}</code>") in page) == later
    assert f"{script}.py</span></h1>" in page
    assert (">Failed<" in page, ">Passed<" in page) == (failed, not failed)


def test_what_checks_nothing_leaves_the_last_check(run: Run) -> None:
    """After each of the commands that check, and before them, all others change nothing."""
    others(run, None)
    seen(run, "")
    for words, script in CHECKING.items():
        assert run(*words.split())[0] != 2
        kept = Path(".adtool/last").read_bytes()
        seen(run, script)
        if words.startswith(("check", "report")):
            others(run, kept)
            seen(run, script, later=True)


def others(run: Run, kept: bytes | None) -> None:
    """Runs the commands that check nothing. kept: what `.adtool/last` holds; None for no file."""
    file = Path(".adtool/last")
    for words in OTHERS:
        run(*words.split())
        assert (file.read_bytes() if file.exists() else None) == kept, words


def test_a_run_that_was_not_checked_is_not_called_healthy(run: Run) -> None:
    """Pictures of such a run say that nothing was checked, and what to run."""
    assert run("capture", "--out", "run.adt", "wrong.py")[0] == 0
    for words in (("run.adt",), ("--no-check", "wrong.py")):
        code, text = run("graph", "--failing", "--out", "view.dot", *words)
        assert code == 0
        assert "no gradient was checked" in text and "`adtool check SCRIPT`" in text
        assert "no problem is known: the whole tape is drawn" in text
        assert "no check failed" not in text
        assert "no gradient was checked" in Path("view.dot").read_text()


def views(run: Run) -> tuple[list[str], str]:
    """The notes of all views of the last run, which are the same; and its page."""
    found = []
    for words in ("graph --failing", "report --html view.html", "trace .adtool/last"):
        code, text = run(*words.split())
        assert code == 0
        assert not words.startswith("graph") or "no check failed" not in text
        found.append([line[6:] for line in text.splitlines() if line.startswith("note: ")])
    assert found[0] == found[1] == found[2]
    return found[0], Path("view.html").read_text()


def test_a_script_that_has_changed_since_and_no_longer_runs(run: Run) -> None:
    assert run("check", "right.py")[0] == 0
    assert "note: " not in run("graph", "--failing")[1]
    script = Path("right.py")
    before = script.read_text()
    script.write_text("raise SystemExit(4)\n" + before)
    changed = "`right.py` has changed since this check"
    assert views(run)[0] == [changed]
    for words in ("check right.py", "graph right.py", "report --html page.html right.py"):
        assert run(*words.split())[0] == 2
    ended = "the script ended by sys.exit(4) at right.py:1"
    error = f"a later check of this script gave no result to show: {ended}"
    notes, page = views(run)
    assert notes == [error, changed]
    assert error in page and "<code>right.py</code> has changed since this check" in page
    script.unlink()
    assert views(run)[0][1].startswith("`right.py` is no longer there")
    script.write_text(before)
    assert views(run)[0] == [error]
    assert run("check", "right.py")[0] == 0
    assert "note: " not in run("graph", "--failing")[1]


def test_a_file_with_a_kernel_that_has_changed_since(run: Run) -> None:
    Path("kernels.py").write_text(Path("right.py").read_text())
    Path("main.py").write_text("import kernels\n")
    assert run("check", "main.py")[0] == 0
    assert "note: " not in run("graph", "--failing")[1]
    Path("kernels.py").write_text("")
    assert views(run)[0] == ["`kernels.py` has changed since this check"]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_other_scripts_of_the_same_command(run: Run, jobs: str) -> None:
    assert run("check", "--jobs", jobs, "wrong.py", "raises.py", "right.py")[0] == 2
    notes, page = views(run)
    assert notes == [
        "the same command was given other scripts, which did not pass: `wrong.py` (failed), "
        "`raises.py` (not checked)"
    ]
    assert "<code>wrong.py</code> (failed)" in page
    assert run("check", "--jobs", jobs, "right.py", "right.py")[0] == 0
    assert "note: " not in run("graph", "--failing")[1]


def test_what_a_check_left_out_is_no_failure(run: Run) -> None:
    """The warning of it has the place of a launch that passed."""
    text = Path("wrong.py").read_text() + Path("right.py").read_text().replace("right.py", "")
    Path("two.py").write_text(text)
    code, said = run("check", "--kernel", "right", "two.py")
    assert code == 0 and "warning[G012]" in said
    said = run("graph", "--failing")[1]
    assert "first problem" not in said
    assert "no problem is known: the whole tape is drawn" in said
    assert "not in the picture: G012 unchecked" in said


TAPES = """
for _ in range(3):
    with wp.Tape() as tape:
        wp.launch({kernel}, 4, [x], [y])
        wp.launch(right, 4, [y], [z])
    tape.backward(grads={{z: wp.ones(4)}})
"""

# Options of a check, the tape that is drawn, and what every view of it says of launches.
PARTLY = {
    ("--launch 1:1 --no-end-to-end", 1): (
        "1 of 2 launches of this tape was checked (1 of 6 launches of all tapes)",
        "1 of 6 launches", "1 of 3 tapes", "5 launches",
    ),
    ("--launch 1:1 --no-end-to-end", 0): (
        "0 of 2 launches of this tape were checked (1 of 6 launches of all tapes)",
        "1 of 6 launches", "1 of 3 tapes", "5 launches",
    ),
    ("--tape 2 --exit-zero", 0): (
        "0 of 2 launches of this tape were checked (2 of 6 launches of all tapes)",
        "2 of 6 launches", "1 of 3 tapes", "4 launches",
    ),
    ("--skip-kernel wrong --gate error", 0): (
        "1 of 2 launches of this tape was checked (3 of 6 launches of all tapes)",
        "3 of 6 launches", "3 tapes", "3 launches",
    ),
    ("--exit-zero", 0): ("", "6 launches", "3 tapes", ""),
}  # fmt: skip


def three_tapes() -> None:
    """Writes `tapes.py`: three tapes of a wrong launch and a right one."""
    text = SCRIPT.format(kernel="wrong", factor="3.0").split("with wp")[0]
    right = "@wp.kernel\ndef right(x: wp.array(dtype=float), y: wp.array(dtype=float)):\n"
    right += "    i = wp.tid()\n    y[i] = 2.0 * x[i]\n"
    more = right + "z = wp.zeros(4, requires_grad=True)\n" + TAPES.format(kernel="wrong")
    Path("tapes.py").write_text(text + more)


def test_every_view_says_how_many_launches_were_checked(run: Run) -> None:
    three_tapes()
    for (options, tape), (here, launches, tapes, left) in PARTLY.items():
        code, text = run("check", *options.split(), "tapes.py")
        assert code == 0, text
        assert f"{tapes}, {launches}, " in text, options
        view = ("graph", "--tape", str(tape), "--out", "view.dot")
        drawn, picture = run(*view)[1], Path("view.dot").read_text()
        failing = run(*view, "--failing")[1]
        run("report", "--html", "view.html")
        page = Path("view.html").read_text()
        if not here:
            for words in (drawn, picture, failing, page):
                assert "launches of this tape" not in words and " of 6 " not in words
            continue
        assert here in picture and here in page
        assert f"{here}: run `adtool check SCRIPT` to check all" in drawn
        assert f"{here}: run" in failing and "no check failed" not in failing
        assert f". {launches} w" in page  # in the summary
        assert f'<th scope="row">{left}</th><td>options of the check selected' in page


def test_a_part_of_a_single_tape(run: Run) -> None:
    text = Path("wrong.py").read_text()
    again = text.replace("tape.backward", "    wp.launch(wrong, 4, [x], [y])\ntape.backward")
    Path("two.py").write_text(again)
    assert run("check", "--launch", "0:0", "--no-end-to-end", "--exit-zero", "two.py")[0] == 0
    _, drawn = run("graph", "--out", "view.dot")
    assert "1 of 2 launches was checked" in drawn and "of all tapes" not in drawn


# What suppresses the finding of `wrong.py`: options, and what the script has changed to.
SUPPRESSED = {
    "--select G002": ("", ""),
    "--ignore G001,G010": ("", ""),
    "": ("def adj_double(x: float, adj_ret: float):", "  # adtool: ignore[G001]"),
}


@pytest.mark.parametrize("options", SUPPRESSED)
def test_every_view_says_what_is_suppressed(run: Run, options: str) -> None:
    """Also of launches that share a finding with an earlier one."""
    three_tapes()
    line, comment = SUPPRESSED[options]
    file = Path("tapes.py")
    file.write_text(file.read_text().replace(line, line + comment) if line else file.read_text())
    code, text = run("check", *options.split(), "tapes.py")
    assert code == 0 and "passed (1 suppressed)" in text, text
    for tape in (None, 0, 2):
        which = () if tape is None else ("--tape", str(tape))
        drawn = run("graph", *which, "--failing", "--out", "view.dot")[1]
        (first,) = (x for x in drawn.splitlines() if "first problem" in x)
        assert f"launch {tape or 0}:0 of kernel `wrong`" in first
        assert first.endswith(" (suppressed)")
        picture = Path("view.dot").read_text()
        assert "red: an error was found here (suppressed)" in picture
        assert ("G001 wrong-gradient (suppressed)<" in picture) == (not tape)
        assert ("wrong gradient (suppressed)<" in picture) == bool(tape)
    run("report", "--html", "view.html")
    page = Path("view.html").read_text()
    assert ">Passed<" in page
    assert "red: an error was found here (suppressed)<" in page
    assert "red: an error was found here<" not in page and "tape 0 (!)" not in page


def test_what_is_not_suppressed_is_shown_first(run: Run) -> None:
    """Of a tape with both, the picture leads to what counts, and its legend tells of both."""
    three_tapes()
    file = Path("tapes.py")
    made = SCRIPT.split("@wp.kernel")[0].replace("import engine as wp", "")
    made = made.replace("double", "triple").format(factor="9.0")
    text = file.read_text().replace("y[i] = 2.0 * x[i]", "y[i] = triple(x[i])")
    text = text.replace("@wp.kernel\ndef right", f"{made}@wp.kernel\ndef right")
    line = "def adj_double(x: float, adj_ret: float):"
    file.write_text(text.replace(line, f"{line}  # adtool: ignore[G001]"))
    code, told = run("check", "tapes.py")
    assert code == 1 and "1 suppressed" in told, told
    _, drawn = run("graph", "--out", "view.dot")
    assert "first problem: launch 0:1 of kernel `right`: G001" in drawn
    assert "suppressed" not in drawn
    picture = Path("view.dot").read_text()
    assert "red: an error was found here (or a suppressed one, where the box says so)" in picture
    assert "G001 wrong-gradient (suppressed)<" in picture and "G001 wrong-gradient<" in picture

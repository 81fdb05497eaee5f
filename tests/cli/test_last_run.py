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


def seen(run: Run, script: str) -> None:
    """Both views show that script's check, or say that there was none and what to run."""
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
    assert ("first failure: launch 0:0 of kernel `wrong`: G001" in views["graph"][1]) == failed
    assert ("no check failed" in views["graph"][1]) == (not failed)
    page = Path("view.html").read_text()
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
            seen(run, script)


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
        assert "no failure is known: the whole tape is drawn" in text
        assert "no check failed" not in text
        assert "no gradient was checked" in Path("view.dot").read_text()

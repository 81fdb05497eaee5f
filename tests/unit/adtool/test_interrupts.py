"""Signals in a process of the tool's: when they end it, and what is done first."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from adtool import interrupts, temporary

HEAD = """
import os, signal, sys, time
from adtool import interrupts

def send(name, pid=None):
    os.kill(pid or os.getpid(), getattr(signal, name))

def say(text):
    print(text, flush=True)
"""


def run(program: str, root: Path, ignored: str = "") -> tuple[int, list[str], list[str]]:
    def begin() -> None:
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            how = signal.SIG_IGN if name == ignored else signal.SIG_DFL
            signal.signal(getattr(signal, name), how)

    done = subprocess.run(
        [sys.executable, "-c", HEAD + textwrap.dedent(program)],
        capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": str(root)},
        preexec_fn=begin,
    )  # fmt: skip
    return done.returncode, done.stdout.split(), done.stderr.splitlines()


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_it_ends_amid_anything(root: Path, name: str) -> None:
    """Also where all exceptions are swallowed, and with what was printed by then."""
    program = f"""
    interrupts.install()
    print("printed")
    try:
        send("{name}")
        say("not reached")
    except BaseException:
        say("caught")
    finally:
        say("finally")
    """
    assert run(program, root) == (2, ["printed"], [f"error: interrupted by {name}"])


def test_what_is_left_is_undone_from_the_last_to_the_first(root: Path) -> None:
    program = """
    interrupts.install()
    for k in range(4):
        interrupts.undo(k, lambda k=k: say(k))
    interrupts.undo("wrong", lambda: 1 / 0)
    interrupts.settled(2)
    interrupts.settled(2)
    send("SIGTERM")
    """
    assert run(program, root) == (2, ["3", "1", "0"], ["error: interrupted by SIGTERM"])


def test_signals_while_it_ends_change_nothing(root: Path) -> None:
    program = """
    interrupts.install()
    interrupts.undo(1, lambda: (say("begun"), send("SIGINT"), send("SIGHUP"), say("done")))
    send("SIGTERM")
    """
    assert run(program, root) == (2, ["begun", "done"], ["error: interrupted by SIGTERM"])


def test_what_must_be_whole_is_done_first(root: Path) -> None:
    program = """
    interrupts.install()
    with interrupts.holding():
        send("SIGHUP")
        with interrupts.holding():
            send("SIGINT")
        say("whole")
    say("not reached")
    """
    assert run(program, root) == (2, ["whole"], ["error: interrupted by SIGHUP"])


def test_who_listens_decides(root: Path) -> None:
    program = """
    import select
    interrupts.install()
    with interrupts.listening() as ear:
        say(f"{ear.heard} {ear.again}")
        send("SIGTERM")
        select.select([ear.descriptor], [], [], 10.0)
        ear.rest()
        say(select.select([ear.descriptor], [], [], 0.0)[0])
        say(f"{ear.heard} {ear.again}")
        send("SIGINT")
        say(f"{ear.heard} {ear.again}")
    send("SIGHUP")  # one request with those before
    say("end")
    time.sleep(1.1)
    send("SIGHUP")
    say("not reached")
    """
    said = ["0", "False", "[]", "15", "False", "15", "True", "end"]
    assert run(program, root) == (2, said, ["error: interrupted by SIGHUP"])


def test_what_nobody_listened_to_is_not_lost(root: Path) -> None:
    program = """
    interrupts.install()
    with interrupts.listening():
        send("SIGTERM")
        say("here")
    say("not reached")
    """
    assert run(program, root) == (2, ["here"], ["error: interrupted by SIGTERM"])


def test_where_it_is_a_library_handlers_are_there_for_the_block(root: Path) -> None:
    program = """
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with interrupts.listening() as ear:
        send("SIGTERM")
        say(ear.heard)
    say(before == (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)))
    try:
        with interrupts.listening():
            send("SIGINT")
    except KeyboardInterrupt:
        say("as ever")
    """
    assert run(program, root) == (0, ["15", "True", "as", "ever"], [])


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_what_is_to_be_ignored_is_ignored(root: Path, name: str) -> None:
    program = f"""
    interrupts.install()
    with interrupts.listening() as ear:
        send("{name}")
        say(ear.heard)
    send("{name}")
    say("end")
    """
    assert run(program, root, ignored=name) == (0, ["0", "end"], [])


def test_after_the_end_nothing_is_to_be_interrupted(root: Path) -> None:
    program = """
    interrupts.install()
    interrupts.over()
    send("SIGTERM")
    say("end")
    """
    assert run(program, root) == (0, ["end"], [])


def test_a_fork_ends_as_any_process(root: Path) -> None:
    program = """
    interrupts.install()
    interrupts.undo(1, lambda: say("undone"))
    pid = os.fork()
    if not pid:
        send("SIGTERM")
        os._exit(0)
    say(os.waitpid(pid, 0)[1])
    """
    assert run(program, root) == (0, ["15"], [])


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere they end by themselves")
def test_programs_that_were_started_end_too(root: Path) -> None:
    program = """
    import subprocess
    interrupts.install()
    code = "import subprocess, time; subprocess.Popen(['sleep', '60'], start_new_session=True)"
    code += "; print(1, flush=True)"
    child = subprocess.Popen([sys.executable, "-c", code + "; time.sleep(60)"],
                             stdout=subprocess.PIPE)
    child.stdout.read(1)
    say(child.pid)
    say(open(f"/proc/{child.pid}/task/{child.pid}/children").read().split()[0])
    interrupts.undo(1, lambda: say("last"))
    interrupts.undo_first(2, lambda: say("first"))
    send("SIGINT")
    """
    code, pids, said = run(program, root)
    assert (code, said) == (2, ["error: interrupted by SIGINT"])
    assert pids[2:] == ["first", "last"]
    for pid in pids[:2]:
        state = Path(f"/proc/{pid}/stat")
        assert not state.exists() or state.read_text().rsplit(")")[1].split()[0] == "Z"


def test_temporary_files_are_left_to_nobody(tmp_path: Path) -> None:
    with temporary.folder("adtool-test-") as folder:
        (folder / "file").touch()
        descriptor, name = temporary.file(tmp_path, ".adtool-")
        os.close(descriptor)
        assert {folder, name} <= set(interrupts._state.undone)
        temporary.remove(name)
    assert not folder.exists() and not Path(name).exists()
    assert not {folder, name} & set(interrupts._state.undone)


def test_little_is_imported_before_it_is_there(root: Path) -> None:
    """Python's own answer to Ctrl-C is a traceback."""
    program = """
    before = {m for m in sys.modules if not m.startswith("adtool")}
    from adtool.__main__ import main
    say(*sorted(set(sys.modules) - before))
    """
    program = textwrap.dedent(program).replace("say(*", "print(*")
    names = ["adtool", "adtool.__main__", "adtool.interrupts", "adtool.paths"]
    assert run(program, root)[1] == names  # `interrupts` is what `HEAD` has imported
    assert 'adtool = "adtool.__main__:main"' in (root / "pyproject.toml").read_text()
    text = (root / "adtool" / "__main__.py").read_text().split("def main")[1]
    assert text.index("import interrupts") < text.index("install()") < text.index("adtool.cli")
    own = (root / "adtool" / "interrupts.py").read_text().splitlines()
    found = {line.split()[1] for line in own if line.startswith(("import ", "from "))}
    assert found == {"__future__", "os", "signal", "sys", "time"}
    paths = (root / "adtool" / "paths.py").read_text()
    assert {x.split()[1] for x in paths.splitlines() if x.startswith("import ")} <= {"os", "sys"}

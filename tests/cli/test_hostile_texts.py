"""Text of others in all that is printed: no control character, no command to a log.

Channels (where hostile text comes in) times outputs (where it goes): a terminal would obey ESC and
C1 controls, turn the direction of text; a log of GitHub Actions takes lines for commands.
"""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.sweeps import reduced

ROOT = Path(__file__).parents[2]

# What comes in. It has no `/` and no NUL, so that files may be named so.
EVIL = "a\x1b]0;x\x07\x9b31m\r\n::error file=x::pwn\n##[error]pwn\u202eb\u2066\u2028::c"
_REPR = repr(EVIL)
# What is ours on a terminal: colours and links.
_OURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[\d*[AK]|\x1b\]8;;[^\x07\x1b]*\x1b\\")
_BAD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def harmless(text: str, terminal: bool = False) -> None:
    """Holds that nothing in an output is obeyed."""
    if terminal:
        text = _OURS.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    assert (found := _BAD.search(text)) is None, (found, text[-3000:])
    for line in text.splitlines():
        assert not line.strip().startswith(("::", "##[")), text
        assert "##[error]pwn" not in line, text


_KERNELS = f"""
import engine as wp, numpy as np
@wp.func
def cube(x: float):
    return x * x * x
@wp.func_grad(cube)
def adj_cube(x: float, adj_ret: float):
    wp.adjoint[x] += 2.0 * x * x * adj_ret
def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = cube(x[i])
EVIL = {_REPR}
def run(kernel, scope=""):
    x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
    y = wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        if scope:
            tape.record_scope_begin(scope)
        wp.launch(kernel, 2, [x], [y])
        if scope:
            tape.record_scope_end()
    tape.backward(grads={{y: wp.ones(2, dtype=float)}})
"""
_RUN = "run(wp.kernel(k))\n"
_TEXT = _KERNELS + _RUN
# A channel: a script's text, its name, what is asked of the tool.
_NAMED = f"{EVIL}.py"


def _script(folder: Path, text: str, name: str = "s.py") -> str:
    (folder / name).write_text(text)
    return name


def _name_of_script(folder: Path) -> list[str]:
    return [_script(folder, _TEXT, _NAMED)]


def _name_of_module(folder: Path) -> list[str]:
    name = _script(folder, _KERNELS + _RUN, _NAMED)
    text = f"import importlib.util as u\ns = u.spec_from_file_location('m', {name!r})\n"
    return [_script(folder, text + "m = u.module_from_spec(s)\ns.loader.exec_module(m)\n")]


def _name_of_kernel(folder: Path) -> list[str]:
    return [_script(folder, _KERNELS + "k.__name__ = EVIL\nrun(wp.Kernel(k, key=EVIL))\n")]


def _scope(folder: Path) -> list[str]:
    return [_script(folder, _KERNELS + "run(wp.kernel(k), EVIL)\n")]


def _source_line(folder: Path) -> list[str]:
    """The characters themselves in the line that a finding shows."""
    raw = EVIL.replace("\r", "").replace("\n", "").replace("\x00", "")
    line = f"wp.launch(kernel, 2, [x], [y])  # {raw}"
    return [_script(folder, _TEXT.replace("wp.launch(kernel, 2, [x], [y])", line))]


def _exception(folder: Path) -> list[str]:
    return [_script(folder, _TEXT + "raise ValueError(EVIL)\n")]


def _exit(folder: Path) -> list[str]:
    return [_script(folder, _TEXT + "raise SystemExit(EVIL)\n")]


def _kind_of_exception(folder: Path) -> list[str]:
    return [_script(folder, _TEXT + "raise type(EVIL.replace(chr(0), ''), (Exception,), {})\n")]


def _refused(folder: Path) -> list[str]:
    """An error of the engine, of a line with the characters."""
    raw = EVIL.replace("\r", "").replace("\n", "")
    return [
        _script(
            folder,
            f"import engine as wp\n@wp.kernel\ndef k(x: wp.array(dtype=float)):\n"
            f"    x[0] = undefined('{raw}')\nwp.launch(k, 1, [wp.zeros(1)])\n",
        )
    ]


def _syntax_error(folder: Path) -> list[str]:
    raw = EVIL.replace("\r", "").replace("\n", "")
    return [_script(folder, f"x = ('{raw}'\n")]


def _no_script(folder: Path) -> list[str]:
    return [_NAMED]


CHANNELS = {
    f.__name__[1:]: f for f in (
        _name_of_script, _name_of_module, _name_of_kernel, _scope, _source_line, _exception, _exit,
        _kind_of_exception, _refused, _syntax_error, _no_script,
    )
}  # fmt: skip
OUTPUTS = {
    "check": ["check", "{}"],
    "verbose": ["check", "--verbose", "--taylor", "{}"],
    "json": ["check", "--format", "json", "{}"],
    "sarif": ["check", "--format", "sarif", "{}"],
    "junit": ["check", "--format", "junit", "{}"],
    "markdown": ["check", "--format", "markdown", "{}"],
    "several": ["check", "{}", "{}"],
    "diff": ["check", "--diff", "--unsafe-fixes", "{}"],
    "graph": ["graph", "{}"],
    "trace": ["trace", "{}"],
    "show": ["show", "{}", "*"],
    "jacobian": ["jacobian", "--kernel", "*", "{}"],
    "capture": ["capture", "{}"],
    "page": ["report", "--out", "o.html", "{}"],
    "baseline": ["baseline", "write", "{}"],
}
_USUAL = {"check", "several", "show", "graph"}


def run(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    given = {k: v for k, v in os.environ.items() if not k.startswith(("GITHUB", "FORCE"))}
    given |= {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", **env}
    return subprocess.run(
        [sys.executable, "-m", "adtool", *words], env=given, cwd=folder, capture_output=True,
        text=True, timeout=200, stdin=subprocess.DEVNULL, errors="surrogateescape",
    )  # fmt: skip


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("output", reduced(list(OUTPUTS), lambda o: o in _USUAL))
def test_what_is_printed_is_obeyed_by_nothing(output: str, channel: str, tmp_path: Path) -> None:
    (name,) = CHANNELS[channel](tmp_path)
    done = run(tmp_path, *(w.replace("{}", name) for w in OUTPUTS[output]))
    assert done.returncode in (0, 1, 2) and "bug in adtool" not in done.stderr, done.stderr
    harmless(done.stdout)
    harmless(done.stderr)
    if output == "json":
        json.loads(done.stdout)


@pytest.mark.parametrize("channel", CHANNELS)
def test_commands_to_a_log_are_ours(channel: str, tmp_path: Path) -> None:
    (name,) = CHANNELS[channel](tmp_path)
    done = run(tmp_path, "check", "--format", "github", name)
    harmless(done.stderr)
    for line in done.stdout.splitlines():
        assert re.match(r"::(error|warning|notice) (file=[^,:]*,)?[\w=,]*title=[^:]*::", line), line
        assert _BAD.search(line) is None and "::pwn" not in line.partition("::")[2][:20]


@pytest.mark.parametrize("channel", reduced(list(CHANNELS), lambda c: c in (
    "name_of_script", "source_line", "exception", "no_script")))  # fmt: skip
@pytest.mark.parametrize("plain", [False, True], ids=["colour", "NO_COLOR"])
def test_a_terminal_gets_our_colours_alone(plain: bool, channel: str, tmp_path: Path) -> None:
    (name,) = CHANNELS[channel](tmp_path)
    given = {k: v for k, v in os.environ.items() if not k.startswith(("GITHUB", "FORCE", "CI"))}
    given |= {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "COLUMNS": "100"}
    given |= {"NO_COLOR": "1"} if plain else {}
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "adtool", "check", name], env=given, cwd=tmp_path, stdin=theirs,
        stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    data = b""
    try:
        while piece := os.read(ours, 1 << 16):
            data += piece
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    process.wait(60)
    text = data.decode("utf-8", "surrogateescape")
    assert text.strip()
    harmless(text, True)
    if plain:
        assert "\x1b[3" not in text and "\x1b[1" not in text


# ---- the command line and the settings

_COMMANDS = (
    "check", "baseline", "capture", "reduce", "jacobian", "graph", "trace", "report", "show",
    "explain", "doctor", "selftest", "schema",
)  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        *([c, EVIL] for c in _COMMANDS if c != "doctor"),
        *([c, f"--{EVIL}"] for c in _COMMANDS),
        [EVIL],
        ["check", "--gate", EVIL, "s.py"],
        ["check", "--seed", EVIL, "s.py"],
        ["check", "--timeout", EVIL, "s.py"],
        ["check", "--ignore", EVIL, "s.py"],
        ["check", "--launch", EVIL, "s.py"],
        ["check", "--device", EVIL, "s.py"],
        ["check", "--format", EVIL, "s.py"],
        ["check", "--out", f"jsn={EVIL}", "s.py"],
        ["check", "--out", f"json=no-{EVIL}/x", "s.py"],
        ["check", "--baseline", EVIL, "s.py"],
        ["check", "--changed-since", EVIL, "s.py"],
        ["check", "-m", EVIL],
        ["check", "--plot", EVIL, "s.py"],
        ["check", "--out", EVIL, "s.py"],
        ["graph", "--out", EVIL, "s.py"],
        ["graph", "--out", f"{EVIL}.dot", "s.py"],
        ["jacobian", "--kernel", EVIL, "s.py"],
        ["jacobian", "--kernel", "k", "--launch", EVIL, "s.py"],
        ["jacobian", "--kernel", "k", "--input", EVIL, "s.py"],
        ["trace", "--kernel", EVIL, "s.py"],
        ["show", "s.py", EVIL],
        ["capture", "--out", f"{EVIL}.adt", "s.py"],
        ["report", "--out", f"{EVIL}.html", "s.py"],
        ["report", f"{EVIL}.json", "--out", "x.html"],
        ["baseline", "write", "--baseline", EVIL, "s.py"],
        ["selftest", "--kernel", EVIL],
    ],
    ids=lambda w: " ".join(x.replace(EVIL, "E") for x in w),
)
def test_the_command_line(words: list[str], tmp_path: Path) -> None:
    _script(tmp_path, _TEXT)
    done = run(tmp_path, *words)
    assert "bug in adtool" not in done.stderr, done.stderr
    harmless(done.stdout)
    harmless(done.stderr)


def _settings() -> list[str]:
    from typer.main import get_command

    from adtool import cli

    found: Any = get_command(cli.app)
    names = {p.opts[0][2:] for p in found.commands["check"].params if p.opts[0].startswith("--")}
    return sorted(names - {"help"})


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=True).replace("\\u001b", "\\u001B")


@pytest.mark.parametrize("name", ["", EVIL, "check", *_settings()])
@pytest.mark.parametrize("words", [["check", "s.py"], ["check", "--help"]], ids=["check", "help"])
def test_settings(name: str, words: list[str], tmp_path: Path) -> None:
    _script(tmp_path, "pass\n")
    key = _toml(name)
    text = f"[tool.adtool]\n{key} = {_toml(EVIL)}\n"
    if name == "check":
        text = f"[tool.adtool.check]\n{_toml(EVIL)} = 1\n"
    (tmp_path / "pyproject.toml").write_text(text)
    done = run(tmp_path, *words, GITHUB_ACTIONS="true")
    assert "bug in adtool" not in done.stderr, done.stderr
    harmless(done.stderr)
    # The tool's own command, for GITHUB_ACTIONS: what follows in its line is data.
    ours = "::error title=adtool%3A not checked::"
    lines = done.stdout.splitlines()
    assert all(_BAD.search(line) is None for line in lines)
    harmless("\n".join(line for line in lines if not line.startswith(ours)))

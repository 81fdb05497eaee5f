"""Kernels that an earlier process compiled: found without the frontend, and never a stale one."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine import config
from engine.compile import remembered, sources
from engine.compile.cache import Cache
from engine.compile.facts import facts_of
from engine.compile.pipeline import Variants
from engine.diagnostics import CompilerError
from engine.runtime import warm
from engine.runtime.kernel import Kernel, lower

PROGRAMS = Path(__file__).parent / "warm_programs"
# What is the same before and after the change; what is found all the same; what no process keeps.
SAME = {"same", "unchanged"}
FOUND = {"same", "same forward"}
_NEVER = ("static_in_loop", "of_metaclass", "of_lazy_module", "of_shown_enum", "of_signature")
NEVER = {*_NEVER, *(f"{name} forward" for name in _NEVER)}

LIGHT = """
import json, sys
import engine as wp

@wp.kernel
def light(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.sin(x[i]) + 1.0

@wp.kernel
def saves(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = y[i] * y[i] * x[i]

x = wp.zeros(8, dtype=float, requires_grad=True)
y = wp.zeros(8, dtype=float, requires_grad=True)
tape = wp.Tape()
with tape:
    wp.launch(light, 8, [x, y])
tape.backward(grads={y: wp.ones(8, dtype=float)})
assert y.numpy().tolist() == x.grad.numpy().tolist() == [1.0] * 8
loaded = sorted(m for m in sys.modules if m.startswith("engine."))
tape.reset()
x.grad.zero_()
x.fill_(1.0)
y.fill_(2.0)
tape = wp.Tape()
with tape:
    wp.launch(saves, 8, [x, y])
    wp.launch(saves, 8, [x, y])
tape.backward(grads={y: wp.ones(8, dtype=float)})
assert y.numpy().tolist() == [16.0] * 8
assert x.grad.numpy().tolist() == [48.0] * 8
print(json.dumps(loaded))
"""
WATCHED = """
import contextlib, sys
import engine as wp

@wp.kernel
def strays(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i + 1 - 1] * 2.0
    if i > 5 and x[0] > 2.0:
        y[i + 8] = 1.0

faults = []
watched = sys.argv[1] == "watched"
x = wp.full(8, 3.0 if watched else 1.0, dtype=float, requires_grad=True)
y = wp.zeros(8, dtype=float, requires_grad=True)
tape = wp.Tape()
with wp.watching(faults.append) if watched else contextlib.nullcontext():
    with tape:
        wp.launch(strays, 8, [x, y])
    tape.backward(grads={y: wp.ones(8, dtype=float)})
print([f.kind for f in faults])
"""
SETTLED = """
import sys
import numpy as np
import engine as wp

@wp.kernel
def waves(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.sin(x[i]) * wp.exp(x[i])

@wp.kernel
def another(x: wp.array(dtype=float)):  # or the adjoint would be compiled with the first launch
    x[wp.tid()] = 0.0

wp.config.precise_math = True
x = wp.array(np.linspace(-3.0, 3.0, 5000), dtype=float, requires_grad=True)
y = wp.zeros(5000, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(waves, 5000, [x], [y])
wp.config.precise_math = sys.argv[1] == "stays"
tape.backward(grads={y: wp.ones(5000, dtype=float)})
print(x.grad.numpy().tobytes().hex())
"""
OPENED = """
import json, os, sys
import engine as wp

@wp.kernel
def first(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i]

@wp.kernel
def second(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 3.0 * x[i]

x = wp.zeros(8, dtype=float, requires_grad=True)
y = wp.zeros(8, dtype=float, requires_grad=True)
z = wp.zeros(8, dtype=float, requires_grad=True)
seen = []
sys.addaudithook(lambda event, args: seen.append((event, str(args[0])))
                 if event in ("open", "ctypes.dlopen") else None)
with wp.Tape() as tape:
    wp.launch(first, 8, [x, y])
    wp.launch(second, 8, [y, z])
tape.backward(grads={z: wp.ones(8, dtype=float)})
own = os.environ["ENGINE_CACHE_DIR"]
print(json.dumps([(event, os.path.relpath(path, own)) for event, path in seen if own in path]))
assert x.grad.numpy().tolist() == [6.0] * 8
"""
# What only kernels that are new need.
COLD = (
    "engine.frontend.lowering", "engine.frontend.statements", "engine.frontend.parsing.fence",
    "engine.builtins", "engine.ir.nodes", "engine.ad.prepare", "engine.ad.threads",
    "engine.codegen.cpp", "engine.compile.cpu.compiler", "engine.compile.cpu.build",
)  # fmt: skip


def run(program: Path, cache: Path, *arguments: str) -> str:
    env = {**os.environ, "ENGINE_CACHE_DIR": str(cache), "ENGINE_VERIFY_IR": "0"}
    env["PYTHONDONTWRITEBYTECODE"] = "1"  # a change within a second would not be seen
    done = subprocess.run(
        [sys.executable, str(program), *arguments], env=env, cwd=program.parent,
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


class Programs:
    """Runs the program before and after its change, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.first = self.run(0, "shared")
        self.again = self.run(0, "shared")
        self.changed = self.run(1, "shared")
        self.fresh = self.run(1, "empty")

    def run(self, state: int, cache: str) -> dict[str, Any]:
        for name in ("helpers", "program"):
            text = (PROGRAMS / f"{name}.txt").read_text(encoding="utf-8")
            text = re.sub(
                r"\{\{(.*?)\|\|(.*?)\}\}", lambda m: m.group(1 + state), text, flags=re.DOTALL
            )
            (self.folder / f"{name}.py").write_text(text, encoding="utf-8")
        run(self.folder / "program.py", self.folder / cache, str(self.folder / "out.json"))
        found: dict[str, Any] = json.loads((self.folder / "out.json").read_text())
        return found


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return Programs(tmp_path_factory.mktemp("programs"))


def test_a_second_process_finds_all_and_gives_the_same(programs: Programs) -> None:
    assert not any(programs.first["hits"].values())
    assert {k for k, hit in programs.again["hits"].items() if not hit} == NEVER
    assert programs.again["out"] == programs.first["out"]
    assert programs.again["texts"] == programs.first["texts"]


def test_no_change_is_overlooked(programs: Programs) -> None:
    assert programs.changed["out"] == programs.fresh["out"]
    assert programs.changed["texts"] == programs.fresh["texts"]
    found = {k for k, hit in programs.changed["hits"].items() if hit}
    assert found == FOUND
    # Each kernel of the table does mean something else.
    same = {k for k, v in programs.fresh["out"].items() if v == programs.first["out"].get(k)}
    assert same == SAME


def test_nothing_of_the_frontend_is_loaded(tmp_path: Path) -> None:
    program, cache = tmp_path / "light.py", tmp_path / "cache"
    program.write_text(LIGHT)
    assert "engine.frontend.lowering" in json.loads(run(program, cache))
    loaded = json.loads(run(program, cache))
    assert not [m for m in loaded if m.startswith(COLD)]
    # Entries that are damaged, each in its way, are made anew.
    entries = {b'"name": "light"' in e.read_bytes(): e for e in (cache / "kernels").iterdir()}
    light = entries[True]
    text, other = light.read_bytes(), entries[False].read_bytes()
    half, spoiled = text[: len(text) // 2], text.replace(b"most", b"mast")
    for damaged in (b"", half, spoiled, b"\xff" + text, text * 2, other):
        light.write_bytes(damaged)
        assert "engine.frontend.lowering" in json.loads(run(program, cache))
        assert light.read_bytes() == text
    # So is the code of a kernel, where the cache had to make room.
    for path in (cache / "objects").iterdir():
        path.unlink()
    assert "engine.frontend.lowering" in json.loads(run(program, cache))
    assert not [m for m in json.loads(run(program, cache)) if m.startswith(COLD)]


def test_nothing_is_read_twice(tmp_path: Path) -> None:
    program, cache = tmp_path / "opened.py", tmp_path / "cache"
    program.write_text(OPENED)
    run(program, cache)
    seen = [tuple(x) for x in json.loads(run(program, cache))]
    assert len(seen) == len(set(seen))
    read = [path for event, path in seen if event == "open"]
    loaded = [path for event, path in seen if event == "ctypes.dlopen"]
    # Both kernels, each with an adjoint; what they were compiled into may be shared.
    assert len([p for p in read if p.startswith("kernels")]) == 2
    assert len([p for p in read if p.startswith("index")]) == 4
    assert sorted(loaded) == sorted(p for p in read if p.startswith("objects"))
    assert len(read) <= 10


def test_a_watched_kernel_is_not_the_one_that_was_kept(tmp_path: Path) -> None:
    program, cache = tmp_path / "watched.py", tmp_path / "cache"
    program.write_text(WATCHED)
    for _ in range(2):
        assert run(program, cache, "plain") == "[]\n"
    for _ in range(2):
        assert run(program, cache, "watched") == "['outside', 'outside']\n"
    assert run(program, cache, "plain") == "[]\n"


SCALE = 2.0


@wp.kernel
def scaled(x: wp.array(dtype=float), n: int, y: wp.array(dtype=float)):
    i = wp.tid()
    for k in range(n):
        wp.atomic_add(y, k % 2, x[i] * SCALE)
    wp.expect_eq(n, 3)


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], warm.Place]:
    """Looks for the place of a kernel, in a cache of the test's own."""
    monkeypatch.setattr(config, "verify_ir", False)
    monkeypatch.setattr(sources._Known, "digest", "of a test")
    monkeypatch.setenv("ENGINE_CACHE_DIR", str(tmp_path / "cache"))

    def look() -> warm.Place:
        found = warm.place_of(scaled)
        assert found is not None
        return found

    return look


@pytest.mark.parametrize(
    ("where", "name", "value"),
    [
        (sys, "version", "3.99"),
        (np, "__version__", "9.9"),
        (sources._Known, "digest", "another"),
        (config, "atomics", "native"),
        (config, "precise_math", True),
        (config, "debug_info", True),
        (sys.modules[__name__], "SCALE", 3.0),
        (sys.modules[__name__], "SCALE", 2),
        (scaled, "key", "another"),
    ],
)
def test_what_decides_is_in_the_key(
    place: Callable[[], warm.Place], monkeypatch: pytest.MonkeyPatch, where: Any, name: str,
    value: object,
) -> None:  # fmt: skip
    before = place().key
    assert place().key == before
    monkeypatch.setattr(where, name, value)
    assert place().key != before


def test_what_is_compiled_under_other_settings_is_not_kept(tmp_path: Path) -> None:
    program, cache = tmp_path / "settled.py", tmp_path / "cache"
    program.write_text(SETTLED)
    run(program, cache, "changes")
    fresh = run(program, tmp_path / "empty", "stays")
    assert run(program, cache, "stays") == fresh
    assert run(program, cache, "changes") == run(program, tmp_path / "other", "changes") != fresh


def test_sources_that_were_written_since_the_start_are_not_trusted() -> None:
    """Since the first module of the engine was loaded, not since somebody asked."""
    loads = subprocess.run(
        [sys.executable, "-c", "import time; t = time.time(); import engine; "
         "from engine.late import STARTED; time.sleep(0.2); "
         "from engine.compile import sources; assert t <= sources.STARTED < t + 0.2"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert loads.returncode == 0, loads.stderr


@wp.struct
class Fields:
    a: float
    b: float


@wp.kernel
def of_fields(s: wp.array(dtype=Fields), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = s[i].a * 10.0 + s[i].b


@pytest.mark.usefixtures("place")
@pytest.mark.host("the CPU's kernels are kept")
def test_structs_that_are_defined_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        b: float
        c: wp.vec3
        a: float

    y = wp.zeros(1, dtype=float)
    found = []
    for cls in (Fields, wp.struct(Other), Fields, wp.struct(Other)):
        monkeypatch.setattr(sys.modules[__name__], "Fields", cls)
        of_fields.forget()
        value = cls()
        value.a, value.b = 2.0, 3.0
        wp.launch(of_fields, 1, [wp.array([value], dtype=cls), y])
        assert y.numpy().tolist() == [23.0]
        found.append(of_fields.plan.variants._remembered is not None)
    assert found == [False, False, True, True]


def text_of(kernel: Kernel) -> tuple[str, Variants, dict[str, Any]]:
    made = Variants(lower(kernel))
    given = dict(kernel.signature.types)
    said = remembered.said_of(made, made.entry(warm.CPU, "forward"), given)
    assert said is not None
    return json.dumps(said), made, given


def test_what_is_read_is_what_was_written() -> None:
    text, made, given = text_of(scaled)
    found = remembered.read(text, given)
    assert found is not None
    assert found.facts == made.facts == facts_of(found.ir())
    assert str(found.ir()) == str(made.ir)
    assert found.form.collected() == made.threads.collected
    assert found.form.most == made.threads.most
    again = remembered.said_of(made, made.entry(warm.CPU, "forward"), given)
    assert json.dumps(again) == text


def test_no_text_that_was_tampered_with_does_harm() -> None:
    text, _, given = text_of(scaled)
    dice = random.Random(3)
    for _ in range(3000):
        at = dice.randrange(len(text))
        some = "".join(dice.choice('{}[]",:0123456789-eE.tfn=') for _ in range(dice.randrange(4)))
        try:
            found = remembered.read(text[:at] + some + text[at + dice.randrange(4) :], given)
            if found is not None:
                found.ir()
                found.form.collected()
        except remembered.Damaged:
            continue
    said = json.loads(text)
    for name in said:
        for value in (None, 1, "x", [], {}, [[]], {"a": 1}, True):
            if type(value) is not type(said[name]):
                wrong = json.dumps({**said, name: value})
                assert remembered.read(wrong, given) is None
        assert remembered.read(json.dumps({k: v for k, v in said.items() if k != name}), {}) is None


def test_ir_that_was_tampered_with_is_told() -> None:
    text, _, given = text_of(scaled)
    found = remembered.read(json.dumps({**json.loads(text), "ir": '[["os",1]]'}), given)
    assert found is not None
    with pytest.raises(CompilerError, match="damaged"):
        _ = Variants(found).ir


@pytest.fixture
def one_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only file of an engine in `tmp_path / "engine"`."""
    root = tmp_path / "engine"
    for room in sources._ROOMS:
        (root / room).mkdir(parents=True)
    monkeypatch.setattr(sources, "_ROOT", str(root))
    file = root / "ir" / "nodes.py"
    file.write_text("a = 1\n")
    return file


def test_sources_are_told_by_their_contents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_source: Path
) -> None:
    file, root, cache = one_source, tmp_path / "engine", Cache(str(tmp_path))
    assert sources._digest(cache) is None  # younger than this process
    monkeypatch.setattr(sources, "STARTED", 1e12)
    first = sources._digest(cache)
    assert first is not None and sources._digest(cache) == first
    file.write_text("a = 2\n")
    second = sources._digest(cache)
    assert second != first
    file.write_text("a = 1\n")
    assert sources._digest(cache) == first
    (root / "codegen" / "native").mkdir()
    (root / "codegen" / "native" / "x.h").write_text("")
    assert sources._digest(cache) not in (first, second)


def test_sources_that_change_before_a_launch_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_source: Path
) -> None:
    """What is seen of them with the first kernel is not believed for long."""
    file, cache = one_source, Cache(str(tmp_path))
    monkeypatch.setattr(sources, "STARTED", 1e12)
    monkeypatch.setattr(sources._Known, "digest", None)
    monkeypatch.setattr(sources._Known, "early", None)
    # Replaced at once, before anybody read them: they are of nobody.
    sources.prepare()
    file.write_text("a = 22\n")
    assert sources._digest(cache) is None
    first = sources._digest(cache)
    # Later: it is looked again.
    sources.prepare()
    file.write_text("a = 333\n")
    monkeypatch.setattr(sources, "_AT_ONCE", 0.0)
    second = sources._digest(cache)
    assert None not in (first, second) and first != second
    # As they are, they are looked at once.
    monkeypatch.setattr(sources, "_AT_ONCE", 60.0)
    sources.prepare()
    monkeypatch.setattr(sources, "_stamp", lambda: 1 / 0)
    assert sources._digest(cache) == second

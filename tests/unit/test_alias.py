"""`engine.alias`: programs that import Warp get the engine, with Warp's meaning where it shows."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import engine as wp
from engine.alias import DIFFERENCES, VERSION, install

KERNELS = """
import warp as wp
from typing import Any

@wp.kernel
def twice(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i] * x[i]

@wp.kernel
def fill(x: wp.array(dtype=float)):
    x[wp.tid()] = 5.0

@wp.kernel
def expects(x: wp.array(dtype=float)):
    wp.expect_eq(x[0], 1.0)
    x[1] = 7.0

@wp.kernel
def add_one(x: wp.array(dtype=Any)):
    wp.atomic_add(x, 0, x.dtype(1))

@wp.kernel
def keep_least(x: wp.array(dtype=Any)):
    wp.atomic_min(x, 0, x.dtype(1))

@wp.kernel
def exchange(x: wp.array(dtype=Any)):
    wp.atomic_exch(x, 0, x.dtype(1))
"""
# By setting: a program, what it prints by the engine's own name, and by that of Warp.
SHOWN = {
    # The adjoint 4 x y' at what the launch read, 3, and at what is there when it runs, 5.
    "overwrites": (
        """
        x = wp.array([3.0], dtype=float, requires_grad=True)
        y = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(twice, 1, [x], [y])
            wp.launch(fill, 1, outputs=[x])
        tape.backward(grads={y: wp.ones(1, dtype=float)})
        print(x.grad.numpy())
        """,
        "[12.]",
        "[20.]",
    ),
    "expect": (
        """
        x = wp.zeros(2, dtype=float)
        try:
            wp.launch(expects, 1, [x])
            wp.synchronize()
        except wp.EngineError:
            print("raised")
        print(x.numpy())
        """,
        "raised [0. 7.]",
        "[0. 7.]",
    ),
    "integers": (
        """
        import warnings
        import numpy as np
        try:
            print(wp.array(np.array([3, 2**32 + 5]), dtype=int).numpy())
        except wp.EngineError as error:
            print(error.diagnostics[0].code)
        with warnings.catch_warnings(record=True) as seen:
            a = wp.array([1, 2], dtype=int, requires_grad=True)
        print(a.numpy(), a.grad, len(seen))
        try:
            print(wp.vec2ub(257, -1))
        except wp.EngineError as error:
            print(error.diagnostics[0].code)
        """,
        "E206 [1 2] None 1 E202",
        "[3 5] [1 2] None 0 [1, 255]",
    ),
    "atomics": (
        """
        for dtype in (wp.int8, wp.uint16, wp.float16, wp.int64):
            for use in (add_one, keep_least, exchange):
                try:
                    x = wp.full(1, 3, dtype=dtype)
                    wp.launch(wp.overload(use, [wp.array(dtype=dtype)]), 1, [x])
                    print(int(x.numpy()[0]))
                except wp.EngineError as error:
                    print(error.diagnostics[0].code)
        """,
        "4 1 1 4 1 1 4 1 1 4 1 1",
        "E104 E104 E104 E104 E104 E104 4 E104 E104 4 1 1",
    ),
    "inner_axes": (
        """
        import numpy as np
        for shape in ((4,), (4, 3), (4, 2, 2), (0, 3), (2, 2, 4, 3)):
            a = wp.from_numpy(np.ones(shape, np.float32), requires_grad=True)
            print(a.shape, a.dtype.__name__, a.grad.shape)
        a = wp.from_numpy(np.arange(6).reshape(2, 3), shape=(6,))
        print(a.shape, a.numpy()[5], wp.from_numpy(np.ones((2, 3)), dtype=wp.float64).shape)
        """,
        "(4,) float32 (4,) (4, 3) float32 (4, 3) (4, 2, 2) float32 (4, 2, 2) "
        "(0, 3) float32 (0, 3) (2, 2, 4, 3) float32 (2, 2, 4, 3) (6,) 5 (2, 3)",
        "(4,) float32 (4,) (4,) vec3f (4,) (4,) mat22f (4,) (0,) vec3f (0,) "
        "(2, 2, 4, 3) float32 (2, 2, 4, 3) (6,) 5 (2, 3)",
    ),
    "immutable": (
        """
        import sys, warnings
        import jax.numpy as jnp
        if wp.__name__ == "engine":
            del sys.modules["warp"]  # as a program has it that never says so
        x, a = jnp.zeros(2), wp.zeros(2, dtype=float)
        y = wp.to_jax(a)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            for written in (wp.from_jax(x), a):
                try:
                    written.fill_(1.0)
                except wp.EngineError as error:
                    print(error.diagnostics[0].code)
        print(x, a.numpy(), len(seen))
        """,
        "E206 E206 [0. 0.] [0. 0.] 0",
        "[1. 1.] [1. 1.] 2",
    ),
}


def run(text: str, tmp_path: Path, alias: str = "") -> str:
    """What a program prints, by the engine's own name or by an alias."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(text))
    if alias:
        first = f"import engine.alias; engine.alias.install({alias!r})"
    else:
        first = "import engine, sys; sys.modules['warp'] = engine"
    code = f"{first}; import runpy; runpy.run_path('script.py', run_name='__main__')"
    env = dict(os.environ, PYTHONPATH=str(Path(wp.__file__).parents[1]))
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path, capture_output=True, text=True, env=env, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.host("JAX shares memory of the host", only=("immutable",))
@pytest.mark.parametrize("setting", [d.setting for d in DIFFERENCES])
def test_differences_show(setting: str, tmp_path: Path) -> None:
    if setting == "immutable":
        pytest.importorskip("jax", reason="jax is not installed")
    text, here, there = SHOWN[setting]
    (found,) = [d for d in DIFFERENCES if d.setting == setting]
    assert getattr(wp.config, setting) != found.value
    text = KERNELS + textwrap.dedent(text)
    assert " ".join(run(text, tmp_path).split()).endswith(here)
    printed = " ".join(run(text, tmp_path, "warp").split())
    assert printed.endswith(there)
    assert "raised" not in printed


IMPORTS = f"""
import sys
import engine
import warp
import warp as wp
import warp.autograd
import warp.types as types
import warp.fem as fem
import warp.sparse, warp.render
from warp import Tape, kernel as K, vec3
from warp.autograd import gradcheck, jacobian
from warp.fem.linalg import anything
from warp._src.thirdparty.appdirs import user_cache_dir
from warp._src.types import Any, Int, NotThere
from warp._src.context import Module, builtin_functions, runtime
import typing
import warp.examples, warp.tests.unittest_utils, warp.geometry.marching
import warp._src.utils
import warp.context

assert wp is warp is sys.modules["warp"] and wp.__name__ == "warp"
assert wp.__version__ == {VERSION!r}
assert Tape is engine.Tape and vec3 is engine.vec3 and K is engine.kernel
assert wp.types is types is engine.types and warp.config is engine.config
assert warp.autograd is engine.autograd and gradcheck is engine.autograd.gradcheck
assert wp.context.Device is engine.Device and Module is engine.Module and Int is engine.Int
assert Any is typing.Any
assert "quat_rotate" in builtin_functions and "tile_load" not in builtin_functions
assert len(builtin_functions) == len([*builtin_functions])
assert builtin_functions["sin"] is wp.sin and "nothing" not in builtin_functions
assert user_cache_dir("mine").endswith("mine")
assert set(engine.__all__) <= set(dir(wp)) and "frontend" not in dir(wp)
for use in (anything, NotThere, runtime.core.some, wp.fem.field, wp._src.utils.gone):
    try:
        use()
    except engine.EngineError as error:
        assert error.diagnostics[0].code == "E112", error
    else:
        raise AssertionError(use)
for name in ("warp.nothing", "warp.frontend", "warp.runtime.array", "warp.types.nothing"):
    try:
        __import__(name)
    except ImportError as error:
        assert name.split(".")[1] in str(error)
    else:
        raise AssertionError(name)
for name in ("nothing", "frontend", "__nothing__"):
    assert not hasattr(wp, name), name

import ctypes
core = wp._src.context.runtime.core
turned, point = wp.transform(wp.vec3(1.0, 2.0, 3.0), wp.quat(0.0, 0.0, 1.0, 0.0)), wp.vec3()
along = wp.vec3(1.0, 0.0, 0.0)
core.wp_builtin_transform_point_transformf_vec3f(turned, along, ctypes.byref(point))
assert point == wp.vec3(0.0, 2.0, 3.0), point
length = ctypes.c_float()
core.wp_builtin_length_vec3f(wp.vec3(3.0, 4.0, 0.0), ctypes.byref(length))
assert length.value == 5.0

from warp import *

@kernel
def square(x: array(dtype=float), y: warp.array[float]):
    i = wp.tid()
    y[i] = warp.cos(wp.sin(x[i])) + sqrt(x[i])

x = wp.full(3, 2.0, dtype=float, requires_grad=True)
y = warp.zeros_like(x)
with Tape() as tape:
    launch(square, 3, [x], [y])
tape.backward(grads={{y: ones_like(y)}})
print(x.grad.numpy().round(4), max(1, 2))
"""


def test_names_and_modules(tmp_path: Path) -> None:
    assert run(IMPORTS, tmp_path, "warp") == "[0.6819 0.6819 0.6819] 2\n"


def test_programs_that_an_installed_package_brings(tmp_path: Path) -> None:
    """`warp.examples` is where data of such programs is, if `warp-lang` is there."""
    lent = tmp_path / "place" / "warp" / "examples"
    (lent / "core").mkdir(parents=True)
    (lent / "__init__.py").write_text("import warp\nWHERE = warp.Tape.__module__\n")
    (lent / "core" / "__init__.py").write_text("NAME = __name__\n")
    text = """
    import sys
    sys.path.insert(0, "place")
    import warp.examples.core, warp.tests
    print(warp.examples.WHERE, warp.examples.core.NAME)
    """
    assert run(text, tmp_path, "warp") == "engine.tape.tape warp.examples.core\n"


def test_other_names(tmp_path: Path) -> None:
    text = "import simulation as s; import simulation.types; print(s.Tape.__name__, s.__name__)"
    assert run(text, tmp_path, "simulation") == "Tape simulation\n"


def test_an_alias_made_twice(tmp_path: Path) -> None:
    text = """
    import sys, engine.alias
    import warp
    engine.config.expect = "raise"
    engine.alias.install("warp")  # changes nothing
    assert engine.config.expect == "raise"
    assert sum(type(f).__name__ == "AliasFinder" for f in sys.meta_path) == 1
    assert sys.modules["warp"] is warp
    print("same")
    """
    assert run(text, tmp_path, "warp") == "same\n"


@pytest.mark.parametrize("name", ["", "a b", "warp.types", "engine", "adtool", "1st"])
def test_names_that_are_refused(name: str) -> None:
    with pytest.raises(wp.LaunchError, match=r"E202.*cannot be a name"):
        install(name)
    assert wp.config.overwrites == "restore"


def test_too_late() -> None:
    with pytest.raises(wp.LaunchError, match=r"E202.*'json' has been imported before") as e:
        install("json")
    assert "engine.alias.install('json')" in e.value.diagnostics[0].help
    assert wp.config.overwrites == "restore"


def test_the_page_names_every_difference(root: Path) -> None:
    text = (root / "docs/from-warp.md").read_text()
    for d in DIFFERENCES:
        assert f'| `{d.setting} = "{d.value}"` | {d.here} | {d.there} |' in text


@pytest.mark.parametrize("name", ["PI", "zeros", "array", "vec3", "kernel", "sin", "launch"])
def test_names_that_a_program_replaces_stay(name: str) -> None:
    """Names come when they are asked for: not over what somebody has put there."""
    code = f"""
import unittest.mock
import engine
with unittest.mock.patch("engine.{name}", "other"):
    assert engine.{name} == "other"
    engine.ones, engine.cos, engine.Tape
    assert engine.{name} == "other"
assert engine.{name} != "other"
engine.{name} = 3.0
engine.TAU, engine.exp, engine.mat33
assert engine.{name} == 3.0
del engine.{name}
assert engine.{name} != 3.0
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

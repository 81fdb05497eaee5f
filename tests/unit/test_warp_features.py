"""Programs for Warp find the names that exist here, and an explanation for missing ones."""

from __future__ import annotations

import importlib
import subprocess
import sys
import types

import numpy as np
import pytest

import engine as wp
from engine.diagnostics import EngineError, KernelError, LaunchError
from engine.frontend import features
from engine.lang.stand_ins import StandIn, StandInModule

MISSING = [
    ("Volume", "volumes"),
    ("volume_sample", "volumes"), ("texture_sample", "textures"), ("Texture2D", "textures"),
    ("tile_load", "tiles"),
    ("sim", "simulation"), ("fem", "finite elements"), ("render", "renderers"),
    ("sparse", "sparse matrices"),
    ("capture_save", "captured graphs"), ("event_from_ipc_handle", "events"),
    ("ScopedMemoryTracker", "memory pools"), ("get_device_allocator", "memory pools"),
    ("load_aot_module", "modules compiled ahead"),
    ("clear_lto_cache", "functions of the cache"),
]  # fmt: skip


def says(error: pytest.ExceptionInfo[EngineError], name: str, feature: str) -> None:
    (found,) = error.value.diagnostics
    assert found.code == "E112"
    assert found.message.startswith(f"engine has no {name!r}: ")
    assert feature in found.message
    assert "not supported" in found.message
    assert found.help
    assert found.span is not None
    assert found.span.file == __file__


@pytest.mark.parametrize(("name", "feature"), MISSING)
def test_missing_name(name: str, feature: str) -> None:
    """It may be mentioned, as a type or a value; what uses it is told."""
    found = getattr(wp, name)
    if isinstance(found, types.ModuleType):
        found, name = found.anything, f"{name}.anything"
    assert not isinstance(3, found)
    assert found is getattr(found, "__or__")(None)  # noqa: B009 (no operator here)
    with pytest.raises(LaunchError) as e:
        found(1, x=2)
    says(e, name, feature)
    with pytest.raises(LaunchError) as e:
        found.part.of_it()
    says(e, f"{name}.part.of_it", feature)
    with pytest.raises(LaunchError) as e:
        wp.zeros(3, dtype=found)
    says(e, name, feature)
    with pytest.raises(LaunchError) as e:
        iter(found)
    says(e, name, feature)

    class Derived(found):
        pass

    with pytest.raises(LaunchError) as e:
        Derived()
    says(e, name, feature)


@pytest.mark.parametrize(
    ("line", "use"),
    [
        ("import engine.fem", "engine.fem.Sample()"),
        ("import engine.sim.model", "engine.sim.model.Model()"),
        ("from engine import Volume, Tape; Tape()", "Volume()"),
        ("from engine import render", "render.anything()"),
        ("from engine.fem.linalg import anything", "anything()"),
        ("import engine.sparse as s; s.anything.deeper", "s.anything()"),
        ("import engine.fem as f; f.a | None", "f.a()"),
    ],
)
def test_missing_import(line: str, use: str) -> None:
    """Nothing is raised where a missing module is only mentioned: what uses it is told."""
    names: dict[str, object] = {}
    exec(line, names)
    with pytest.raises(LaunchError, match="E112"):
        eval(use, names)


def test_decorators_of_missing_modules() -> None:
    fem = importlib.import_module("engine.fem")

    @fem.integrand
    def plain(x: fem.Sample) -> float:
        return 0.0

    @fem.integrand(kernel_options={"a": 1})
    def with_options(x: fem.Sample) -> float:
        return 0.0

    for found in (plain, with_options):
        with pytest.raises(LaunchError, match=r"E112.*finite elements"):
            found(1)


def test_other_imports_fail_as_ever() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'engine\.no_such'"):
        importlib.import_module("engine.no_such")
    with pytest.raises(ModuleNotFoundError, match="No module named 'no_such'"):
        importlib.import_module("no_such")
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'engine\.types\.fem'"):
        importlib.import_module("engine.types.fem")
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        exec("from engine import nothing")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = wp.nothing


def test_import_adds_one_finder() -> None:
    text = (
        "import sys, engine, importlib; importlib.reload(engine);"
        "sys.exit(sum(f.__name__ == '_Finder' for f in sys.meta_path if isinstance(f, type)) != 1)"
    )
    subprocess.run([sys.executable, "-c", text], check=True)


def test_nothing_that_is_here_is_called_missing() -> None:
    named = (n for n in dir(wp) if not n.startswith("_"))
    here = {n for n in named if not isinstance(getattr(wp, n), (StandIn, StandInModule))}
    assert here & set(features._EXACT) == set()


@wp.struct
class Body:
    mass: float
    look: wp.Texture2D


@wp.kernel
def of_textures(t: wp.array(dtype=wp.Texture2D), x: wp.array(dtype=float)):
    x[0] = 1.0


@wp.kernel
def of_bodies(b: wp.array(dtype=Body), x: wp.array(dtype=float)):
    if b[0].look:
        x[0] = b[0].mass


@wp.kernel
def tiled(x: wp.array(dtype=float)):
    x[1] = wp.tile_load(x, shape=4)[0]
    x[0] = 1.0


def test_a_field_of_a_missing_type() -> None:
    """A struct with one is a struct like others, as long as nothing reads that field."""
    body = Body()
    body.mass = 3.0
    body.look = None
    with pytest.raises(LaunchError, match=r"E112.*textures"):
        body.look = 7
    bodies = wp.array([body, body], dtype=Body)
    x = wp.zeros(2, dtype=float)
    wp.launch(masses, dim=2, inputs=[bodies, x])
    np.testing.assert_array_equal(x.numpy(), 3.0)


@wp.kernel
def masses(b: wp.array(dtype=Body), x: wp.array(dtype=float)):
    x[wp.tid()] = b[wp.tid()].mass


@pytest.mark.parametrize(
    ("kernel", "count", "feature"),
    [(of_textures, 2, "textures"), (of_bodies, 2, "textures"), (tiled, 1, "tiles")],
)
def test_launches_that_need_it(kernel: wp.Kernel, count: int, feature: str) -> None:
    x = wp.zeros(4, dtype=float)
    first = wp.zeros(2, dtype=Body) if kernel is of_bodies else x
    with pytest.raises(KernelError, match=f"E112.*{feature}") as e:
        wp.launch(kernel, dim=1, inputs=[first, x][2 - count :])
    assert e.value.diagnostics[0].span.file == __file__
    np.testing.assert_array_equal(x.numpy(), 0.0)


@pytest.mark.host("the CPU is the device")
def test_harmless_calls_work() -> None:
    """What scripts do around their launches, which means little on the CPU."""
    wp.init()
    before = wp.config.mode, wp.config.verbose
    wp.config.verify_fp = False
    wp.config.quiet = True
    wp.config.print_launches = False
    assert before == (wp.config.mode, wp.config.verbose)
    x = wp.zeros(2, dtype=float, pinned=True)
    with wp.ScopedDevice("cpu"), wp.ScopedTimer("launch", print=False, synchronize=True):
        wp.launch(one, dim=2, inputs=[x], device="cpu", block_dim=64, max_blocks=1, stream=None)
    wp.synchronize()
    wp.synchronize_device("cpu")
    np.testing.assert_array_equal(x.numpy(), 1.0)
    assert wp.is_device_available("cpu")
    assert not wp.is_device_available("cuda:17")
    assert not wp.is_device_available("tpu")


@wp.kernel(enable_backward=False)
def one(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


def test_former_modules_have_what_the_engine_has() -> None:
    """Older programs begin with `wp.context.init()`."""
    import engine.build
    import engine.context
    from engine.context import Device

    assert wp.context.init() is None and wp.build.clear_kernel_cache is wp.clear_kernel_cache
    assert Device is wp.Device and engine.context.Kernel is wp.Kernel
    assert isinstance(wp.context.sparse, StandIn)
    with pytest.raises(LaunchError) as e:
        wp.context.nothing()
    says(e, "context.nothing", "internals of Warp")

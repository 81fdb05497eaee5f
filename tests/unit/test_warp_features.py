"""What programs written for Warp find here: names that are missing say so, the others work."""

from __future__ import annotations

import importlib
import subprocess
import sys

import numpy as np
import pytest

import engine as wp
from engine.diagnostics import KernelError
from engine.frontend import features

MISSING = [
    ("Mesh", "meshes"), ("HashGrid", "hash grids"), ("Volume", "volumes"),
    ("Bvh", "bounding volume"),
    ("tile_load", "tiles"), ("mesh_query_point", "meshes"), ("hash_grid_query", "hash grids"),
    ("volume_sample", "volumes"), ("texture_sample", "textures"), ("Texture2D", "textures"),
    ("bvh_query_ray", "bounding volume"), ("launch_tiled", "tiles"),
    ("sim", "simulation"), ("fem", "finite elements"), ("render", "renderers"),
    ("optim", "optimizers"), ("sparse", "sparse matrices"), ("utils", "utilities"),
    ("capture_begin", "CUDA graphs"), ("capture_launch", "CUDA graphs"),
    ("ScopedCapture", "CUDA graphs"), ("Stream", "streams"), ("ScopedStream", "streams"),
    ("get_stream", "streams"), ("wait_event", "events"), ("Event", "events"),
    ("is_mempool_enabled", "memory pools"), ("ScopedMempool", "memory pools"),
    ("map", "maps of functions"), ("force_load", "modules compiled ahead"),
    ("clear_kernel_cache", "functions of the cache"), ("get_cuda_devices", "CUDA devices"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "feature"), MISSING)
def test_missing_name(name: str, feature: str) -> None:
    with pytest.raises(AttributeError) as e:
        getattr(wp, name)
    first, help_line = str(e.value).splitlines()
    assert first.startswith(f"error[E112]: engine has no {name!r}: ")
    assert feature in first
    assert "not supported" in first
    assert len(help_line) > len("help: ")
    assert not hasattr(wp, name)


@pytest.mark.parametrize(
    "line",
    ["import engine.fem", "import engine.sim.model", "from engine import Mesh, Tape",
     "from engine import render", "from engine.optim import Adam", "import engine.utils as u"],
)  # fmt: skip
def test_missing_import(line: str) -> None:
    with pytest.raises(ImportError, match=r"E112.* are not supported\nhelp: "):
        exec(line)


def test_other_imports_fail_as_ever() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'engine\.no_such'"):
        importlib.import_module("engine.no_such")
    with pytest.raises(ModuleNotFoundError, match="No module named 'no_such'"):
        importlib.import_module("no_such")
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        exec("from engine import nothing")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = wp.nothing


def test_import_adds_one_finder() -> None:
    text = (
        "import sys, engine, importlib; importlib.reload(engine);"
        "sys.exit(sum(f.__name__ == 'Finder' for f in sys.meta_path if isinstance(f, type)) != 1)"
    )
    subprocess.run([sys.executable, "-c", text], check=True)


def test_nothing_that_is_here_is_called_missing() -> None:
    here = {n for n in dir(wp) if not n.startswith("_")}
    assert here & set(features._EXACT) == set()


def test_a_field_of_a_missing_type() -> None:
    with pytest.raises(KernelError, match=r"E112.*meshes are not supported"):

        @wp.struct
        class Body:
            mesh: wp.Mesh


def test_harmless_calls_work() -> None:
    """What scripts do around their launches, which means little on the CPU."""
    wp.init()
    before = wp.config.mode, wp.config.verbose
    wp.config.verify_fp = True
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

"""Compilation with a cache folder that vanishes, is damaged, or cannot be written."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import engine as wp
from engine.compile import cache as cache_module
from engine.compile.cache import open_cache
from engine.diagnostics import CompilerError
from engine.hashing import is_whole


def check() -> None:
    """Runs a kernel, and its adjoint, which nobody has compiled in this process."""

    @wp.kernel
    def tripled(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = 3.0 * x[i] * x[i]

    x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
    y = wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(tripled, 2, [x, y])
    tape.backward(grads={y: wp.ones(2, dtype=float)})
    np.testing.assert_array_equal(y.numpy(), [3.0, 12.0])
    np.testing.assert_array_equal(x.grad.numpy(), [6.0, 12.0])


def folders_for_files(folder: Path) -> None:
    for path in [p for name in ("objects", "index", "kernels") for p in (folder / name).iterdir()]:
        path.unlink()
        path.mkdir()
        (path / "something").write_text("")


def file_for_folder(folder: Path) -> None:
    shutil.rmtree(folder / "objects")
    (folder / "objects").write_text("")


DAMAGES: dict[str, Callable[[Path], None]] = {
    "all gone": shutil.rmtree,
    "no objects": lambda folder: shutil.rmtree(folder / "objects"),
    "no index": lambda folder: shutil.rmtree(folder / "index"),
    "no place for builds": lambda folder: shutil.rmtree(folder / "tmp"),
    "folders for files": folders_for_files,
    "a file for a folder": file_for_folder,
}


@pytest.mark.filterwarnings(
    "ignore:.*kernel cache"
)  # what is said: tests/unit/compile/test_trust.py
@pytest.mark.parametrize("when", ["while it runs", "before it starts"])
@pytest.mark.parametrize("how", DAMAGES)
def test_kernels_are_compiled_all_the_same(
    fresh: Path, forget: Callable[[], None], forget_kernels: Callable[[], None], how: str, when: str
) -> None:
    check()
    DAMAGES[how](fresh)
    (forget if when == "before it starts" else forget_kernels)()
    check()
    forget_kernels()
    check()


def test_a_disk_that_is_full(
    fresh: Path, forget_kernels: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    check()
    forget_kernels()
    shutil.rmtree(fresh / "index")
    (fresh / "index").mkdir()
    replace, full = cache_module._replace, [str(fresh)]

    def fails(made: str | Path, path: str | Path) -> None:
        if str(path).startswith(tuple(full)):
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(made, path)

    monkeypatch.setattr(cache_module, "_replace", fails)
    check()  # in a folder of this process
    assert open_cache().folder != str(fresh)
    cache_module._instead.clear()
    forget_kernels()
    full.append(os.sep)
    with pytest.raises(CompilerError, match=r"E302.*cannot be written: No space left"):
        check()


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("return x;", True),
        ("#include <cmath>\nreturn sqrt(x);", True),
        ("int included = 1; // include that", True),
        ('#include "a.h"', False),
        (' # include\t"a.h"', False),
        ("#include </tmp/a.h>", False),
        ("#include <../a.h>", False),
        ("#include NAME", False),
        ('#inc\\\nlude "a.h"', False),
        ('%:include "a.h"', False),
        ("#import <a.h>", True),
        ('#embed "data.bin"', False),
    ],
)
def test_text_that_names_files(text: str, whole: bool) -> None:
    assert is_whole(text) == whole


def test_files_that_snippets_include_are_read_anew(
    tmp_path: Path, forget: Callable[[], None]
) -> None:
    header = tmp_path / "factor.h"
    script = f'#include "{header}"\nreturn factor * x;'
    for factor in (2.0, 2.0, 3.0):
        header.write_text(f"const float factor = {factor}f;\n")

        @wp.func_native(script)
        def times(x: float) -> float: ...

        @wp.kernel
        def kernel(x: wp.array(dtype=float), y: wp.array(dtype=float)):
            i = wp.tid()
            y[i] = times(x[i])

        y = wp.zeros(2, dtype=float)
        wp.launch(kernel, 2, [wp.array([1.0, 2.0], dtype=float), y])
        np.testing.assert_array_equal(y.numpy(), [factor, 2 * factor])
        forget()  # as another process would

"""Faults of the compiled launcher, made on purpose: tests that look for such have to see them.

Each is an edit of the C++ text in `engine/accel/native`. `install` has the process make its
native functions from a copy that has it; the text is part of what the cache finds code by, so that
no other process gets it. Nothing in `engine` knows of that.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from engine.accel import launcher

# By name: the file, text that stands there once, and what stands there instead.
SPOILINGS: dict[str, tuple[str, str, str]] = {
    # Of what a launch reads again, only its first array is noted.
    "view-forgotten": (
        "launch.h",
        "bool note(const launch_t& l, object* watched) const {\n"
        "        for (int64_t k = 0; k < py.tuple_size(watched); ++k) {\n",
        "bool note(const launch_t& l, object* watched) const {\n"
        "        for (int64_t k = 0; k < py.tuple_size(watched) && k < 1; ++k) {\n",
    ),
    # Floats that launches are given are others: values are wrong, and no gradient need be.
    "argument-wrong": (
        "arguments.h",
        "const double x = py.as_double(v);\n",
        "const double x = 1.5 * py.as_double(v);\n",
    ),
    # Writes by compiled code do not count.
    "version-not-counted": (
        "arguments.h",
        "    if (known) return advance(storage, 1);\n",
        "    if (known) return true;\n",
    ),
    # Memory does not know who holds what it contains, so that nothing is copied before a write.
    "hold-released": (
        "hold.h",
        "    set(s, S_HOLD, reference);\n",
        "    drop(reference);\n",
    ),
    # The adjoint of a launch takes the record of the launch after it, where both are of one kernel.
    "record-reused": (
        "back.h",
        "    const seen_t one = launches[k];\n    if (!one.quiet",
        "    const bool reused = k + 1 < launches.count\n"
        "        && &launches.recipe(k + 1) == &launches.recipe(k);\n"
        "    const seen_t one = launches[k + reused];\n    if (!one.quiet",
    ),
}

# The same, for what is to be asked again at each launch: it counts as it was the first time.
STALE: dict[str, tuple[str, str, str]] = {
    "settings": (
        "interpreter.h",
        "if (now == seen) return false;\n",
        "if (seen) return false;\n",
    ),
    "listeners": (
        "world.h",
        "for (object* list : py.quiet) if (py.list_size(list)) return false;\n",
        "",
    ),
    "options-of-kernels": (
        "world.h",
        "type_of(own) == type_of(other) && py.dict_size(own) == 0\n",
        "type_of(own) == type_of(other)\n",
    ),
    "options-of-modules": (
        "world.h",
        "const bool free = !said || said == py.none;\n",
        "const bool free = !said || said != py.no_memory;\n",
    ),
    "flags-of-arrays": (
        "world.h",
        "if (a == py.none || slot(a, A_FLAG) != py.yes) continue;\n",
        "if (a == py.none) continue;\n",
    ),
    "flags-of-captured-arrays": (
        "sequence.h",
        "if ((flag ? py.yes : py.no) != p.told) return nothing();\n",
        "",
    ),
    "gradients-of-captured-arrays": (
        "sequence.h",
        "if (slot(p.array, A_GRAD) != p.told) return nothing();\n",
        "",
    ),
    "grids": (
        "world.h",
        "if (!at.grid || at.n != n) {\n",
        "if (!at.grid) {\n",
    ),
    "limits": (
        "world.h",
        "if (!same(slot(b, B_STACK), w.stack) || !same(slot(b, B_JOURNAL), w.journal)) return;\n",
        "",
    ),
    "readiness-of-records": (
        "back.h",
        "return py.holds(slot(s, N_READY_GRIDS), one.dim) == 1 && selected(r, one.values) == s;\n",
        "return py.holds(slot(s, N_READY_GRIDS), one.dim) == 1;\n",
    ),
}


def install(name: str) -> None:
    """Has this process make its native functions with a fault; before it has made any.

    Raises ValueError where the text that is to be edited does not stand there once.
    """
    assert launcher.maker.functions is None, "they are made"
    file, old, new = (SPOILINGS | STALE)[name]
    folder = Path(tempfile.mkdtemp(prefix="spoiled-"))
    owner = os.getpid()  # its forks need it as long
    atexit.register(lambda: os.getpid() == owner and shutil.rmtree(folder, ignore_errors=True))
    native = Path(launcher.__file__).parent / "native"
    shutil.copytree(native, folder / "native")
    path = folder / "native" / file
    text = path.read_text(encoding="utf-8")
    if text.count(old) != 1:
        raise ValueError(
            f"{file} has {text.count(old)} places for the edit {name!r}: see SPOILINGS"
        )
    path.write_text(text.replace(old, new), encoding="utf-8")
    launcher.__file__ = str(folder / "launcher.py")  # beside which it looks for its C++

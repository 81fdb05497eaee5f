"""The calls of CuPy in the engine's text, and the signatures that CuPy documents.

`python -m tests.backend.cuda.cupy_signatures`, where CuPy is installed, writes the table,
`cupy_signatures.json`: for each name that is called, its parameters; None for others. It needs no
GPU.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
TABLE = Path(__file__).with_suffix(".json")
# What the text calls modules, classes and objects of CuPy, in the files that do.
FILES = {
    "engine/compile/cuda/gpu.py": {
        "self._cupy": "", "self._cuda": "cuda.", "self._runtime": "cuda.runtime.",
        "self._driver": "cuda.driver.", "cupy.cuda": "cuda.", "cupy.cuda.runtime": "cuda.runtime.",
        "runtime": "cuda.runtime.", "stream": "cuda.Stream.", "other": "cuda.Stream.",
        "self.current_stream()": "cuda.Stream.", "self._stream": "cuda.Stream.",
        "graph": "cuda.graph.Graph.", "memory": "cuda.MemoryPointer.",
        "pages": "cuda.PinnedMemoryPointer.",
        "self._cuda.get_current_stream(self.ordinal)": "cuda.Stream.",
        "self._runtime.pointerGetAttributes(address)": "cuda.runtime.PointerAttributes.",
        "self._runtime.pointerGetAttributes(data.ctypes.data)": "cuda.runtime.PointerAttributes.",
    },
    "engine/compile/cuda/nvrtc.py": {"nvrtc": "nvrtc.", "find()": "nvrtc."},
    "engine/compile/cuda/pinned.py": {"e": "cuda.Event."},
    "engine/runtime/streams.py": {
        "Stream: self.native": "cuda.Stream.", "Event: self.native": "cuda.Event.",
    },
}  # fmt: skip


_MODULES = ("cuda", "cuda.runtime", "cuda.driver")


@dataclass(frozen=True)
class Use:
    """A name, and how it is called: by so many values, and names of others. None: it is not."""

    name: str
    place: str
    given: int | None = None
    named: tuple[str, ...] = ()


@dataclass(frozen=True)
class Parameter:
    """optional: it has a default. kind: "*" or "**" where it takes any others."""

    name: str
    optional: bool = False
    kind: str = ""


def uses() -> list[Use]:
    """All that the engine's text has of CuPy."""
    out: list[Use] = []
    for file, names in FILES.items():
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        for outer in tree.body:
            around = f"{outer.name}: " if isinstance(outer, ast.ClassDef) else ""
            called = {id(c.func): c for c in ast.walk(outer) if isinstance(c, ast.Call)}
            for node in ast.walk(outer):
                if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
                    continue
                said = ast.unparse(node.value)
                prefix = names.get(f"{around}{said}", names.get(said))
                name, place = f"{prefix}{node.attr}", f"{file}:{node.lineno}"
                if prefix is None or name in _MODULES:
                    continue
                call = called.get(id(node))
                if call is None:
                    out.append(Use(name, place))
                else:
                    named = tuple(k.arg or "**" for k in call.keywords)
                    out.append(Use(name, place, len(call.args), named))
    return out


def fits(use: Use, takes: list[Parameter]) -> bool:
    """Whether a call is one that a function takes."""
    if use.given is None:
        return True
    plain = [p for p in takes if not p.kind]
    more = {p.kind for p in takes if p.kind}
    if use.given > len(plain) and "*" not in more:
        return False
    left = plain[use.given :]
    if not {p.name for p in left}.issuperset(use.named) and "**" not in more:
        return False
    return all(p.optional or p.name in use.named for p in left)


# ---- CuPy's own


def real(name: str) -> Any:
    """What a name is in CuPy. Raises AttributeError where there is no such thing."""
    import cupy
    from cupy_backends.cuda.libs import nvrtc

    if name == "cuda.Stream.ptr":
        return cupy.cuda.Stream.null.ptr  # of objects alone
    path = name.split(".")
    if path[0] == "nvrtc":
        return getattr(nvrtc, path[1])
    found: Any = cupy
    for part in path:
        found = getattr(found, part)
    return found


def takes(function: Any) -> list[Parameter]:
    """The parameters of a function, a method or a class, without `self`."""
    try:
        found = [_parameter(p) for p in inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):  # compiled: it stands in front of what it says of itself
        head = re.match(r"[\w.]+\((.*)\)", function.__doc__.partition("\n")[0])
        assert head is not None, function
        found = [p for p in map(_written, head[1].split(",")) if p.name]
    return [p for p in found if p.name != "self"]


def _parameter(p: inspect.Parameter) -> Parameter:
    kind = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    return Parameter(p.name, p.default is not p.empty, kind)


def _written(text: str) -> Parameter:
    """One as Cython writes it: `size_t size`, `priority=None`."""
    name, default, _ = text.partition("=")
    return Parameter(name.replace("*", "").strip().rpartition(" ")[2], bool(default))


def read() -> dict[str, Any]:
    """The table for the CuPy that is installed."""
    import cupy

    called = {u.name for u in uses() if u.given is not None}
    names = sorted({u.name for u in uses()})
    return {
        "cupy": cupy.__version__,
        "names": {k: [_data(p) for p in takes(real(k))] if k in called else _there(k)
                  for k in names},
    }  # fmt: skip


def _there(name: str) -> None:
    real(name)


def _data(p: Parameter) -> str:
    return f"{p.kind}{p.name}{'=' * p.optional}"


def kept() -> tuple[str, dict[str, list[Parameter] | None]]:
    """The version of CuPy that the table is of, and the table."""
    said = json.loads(TABLE.read_text(encoding="ascii"))
    return said["cupy"], {k: None if v is None else list(map(_of, v))
                          for k, v in said["names"].items()}  # fmt: skip


def _of(data: str) -> Parameter:
    stars, name, default = re.fullmatch(r"(\**)(\w+)(=?)", data).groups()  # type: ignore[union-attr]
    return Parameter(name, bool(default), stars)


if __name__ == "__main__":
    TABLE.write_text(json.dumps(read(), indent=2) + "\n", encoding="ascii")

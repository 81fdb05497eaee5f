"""Builtins that are no operation: the frontend and the host have code for each."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from engine.builtins.bits import reinterpretable
from engine.classes import dataclass
from engine.ir.ops import OPS
from engine.lang.stand_ins import make_stand_in
from engine.lang.types import (
    MatrixType,
    ScalarType,
    Type,
    ValueType,
    VectorType,
    scalar_of,
    shape_of,
)
from engine.lang.values import to_value_type


@dataclass(frozen=True, slots=True)
class Special:
    """A builtin with its doc and what it does on the host."""

    doc: str
    host: Callable[..., Any]


def tile_annotation() -> Any:
    """What `tile[dtype, rows, columns]` is: a type may be mentioned, what needs it is E112."""
    return make_stand_in("tile", "tiles", "loop over the elements with one thread for each result")


def _tile(value: Any = None, preserve_type: bool = False, **of: Any) -> Any:
    return tile_annotation() if value is None and of else (value,)


def _refuse(name: str, *args: Any) -> NoReturn:
    from engine.builtins.stubs import _describe, _fail

    shown = ", ".join(_describe(a) for a in args)
    _fail("E104", f"{name}() does not take ({shown})", SPECIAL[name].doc)


def _value_of(x: Any, t: Type) -> Any:
    from engine.builtins.stubs import _from_numpy

    return _from_numpy(x, t)


def _known(x: Any) -> ValueType | None:
    from engine.builtins.stubs import _type_of

    found = _type_of(x)
    return None if found is None else found[0]


def _identity(n: Any, dtype: Any = float) -> Any:
    scalar = to_value_type(dtype)
    if not isinstance(scalar, ScalarType) or not isinstance(n, (int, np.integer)) or n < 1:
        _refuse("identity", n, dtype)
    t = MatrixType(scalar, int(n), int(n))
    return _value_of(np.eye(*shape_of(t), dtype=scalar.numpy), t)


def _cast(a: Any, dtype: Any) -> Any:
    have, want = _known(a), to_value_type(dtype)
    if have is None or (have != want and not reinterpretable(have, want)):
        _refuse("cast", a, dtype)
    data = np.asarray(a, scalar_of(have).numpy)
    return _value_of(OPS["reinterpret"].numpy(want, data) if have != want else data[()], want)


def _from_vectors(name: str, vectors: tuple[Any, ...], rows: bool) -> Any:
    kinds = [_known(v) for v in vectors]
    first = kinds[0] if kinds else None
    if not isinstance(first, VectorType) or any(k != first for k in kinds):
        _refuse(name, *vectors)
    data = np.stack([np.asarray(v) for v in vectors], 0 if rows else 1)
    return _value_of(data, MatrixType(first.scalar, *data.shape))


def _length(a: Any) -> Any:
    try:
        return len(a)
    except TypeError:
        _refuse("len", a)


def _printf(form: str, *args: Any) -> None:
    text = re.sub(r"(%[-+ #0]*\d*(?:\.\d*)?)(?:hh|h|ll|l|L|z|j|t)", r"\1", form)
    print(text % args, end="")


SPECIAL: dict[str, Special] = {
    "identity": Special(
        "identity(n, dtype): the n x n matrix with ones on its diagonal.",
        _identity,
    ),
    "matrix_from_rows": Special(
        "matrix_from_rows(v, ...): the matrix that has these vectors as rows.",
        lambda *v: _from_vectors("matrix_from_rows", v, rows=True),
    ),
    "matrix_from_cols": Special(
        "matrix_from_cols(v, ...): the matrix that has these vectors as columns.",
        lambda *v: _from_vectors("matrix_from_cols", v, rows=False),
    ),
    "cast": Special(
        "cast(x, dtype): the bytes of x read as another type of the same size; no derivative. To "
        "convert a number, call the type: int(x).",
        _cast,
    ),
    "print": Special(
        "print(a, ...): prints values and strings, f-strings too, with blanks between them and a "
        "new line. The output of kernels appears on Python's standard output when the launch has "
        "ended, in "
        "the order of the threads; the backward pass does not print it again.",
        print,
    ),
    "printf": Special(
        "printf(format, a, ...): prints values by a format of C: %d, %u, %x, %f, %e, %g, %s.",
        _printf,
    ),
    "tile": Special(
        "tile(value, preserve_type=False): a tile of the values that the threads of a block have. "
        "On the CPU a block has one thread, and a tile one value, which `t[0]` gives. Of vectors "
        "and matrices with preserve_type=True.",
        _tile,
    ),
    "untile": Special("untile(t): the thread's own value of a tile.", lambda t: t[0]),
    "tile_reduce": Special(
        "tile_reduce(f, t): a tile of one value, that of all threads of the block by a function of "
        "two values.",
        lambda f, t: t,
    ),
    "tile_sum": Special("tile_sum(t): a tile of one value, the sum of a tile's.", lambda t: t),
    "tile_min": Special("tile_min(t): a tile of one value, the least of a tile's.", lambda t: t),
    "tile_max": Special("tile_max(t): a tile of one value, the greatest of a tile's.", lambda t: t),
    "block_dim": Special("block_dim(): threads of a block, 1 on the CPU.", lambda: 1),
    "len": Special(
        "len(x): components of a vector, rows of a matrix, elements of an array along its first "
        "dimension.",
        _length,
    ),
}

"""Signatures of builtins, found by asking each overload which types it takes.

In a signature `T` is any type of numbers, `F` a float type and `I` an integer type, the same one
everywhere; N, M and K are any lengths.
"""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.builtins.composite import COMPOSITES, Composite
from engine.builtins.resolve import candidates, describe
from engine.frontend import lower_composite
from engine.ir.ops import OPS, Op
from engine.lang.types import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    SCALARS,
    UINT32,
    ArrayType,
    MatrixType,
    ScalarType,
    Type,
    VectorType,
    quat_type,
    scalar_of,
    transform_type,
    with_scalar,
)

Types = tuple[Type, ...]
SIZES = (2, 3, 4, 5)
# The scalar stands for others of its kind; int32, uint32 and bool also stand for themselves.
GENERIC = (FLOAT64, INT64)
KINDS = {
    "T": frozenset(t for t in SCALARS.values() if t.kind != "b"),
    "F": frozenset(t for t in SCALARS.values() if t.kind == "f"),
    "I": frozenset(t for t in SCALARS.values() if t.kind in "iu"),
}


@dataclass(frozen=True)
class Overload:
    """One meaning of a name: an operation, with the order of its arguments, or a composite."""

    meaning: Op | Composite
    doc: str
    names: tuple[str, ...]  # of the arguments, with their defaults
    order: tuple[int, ...] | None = None

    def result(self, types: Sequence[Type]) -> Types | None:
        """What it gives for arguments of these types; None where it does not take them."""
        if isinstance(self.meaning, Op):
            if len(types) != len(self.names):
                return None
            if any(isinstance(t, ArrayType) for t in types):
                return None  # operations are on values
            found = self.meaning.infer([types[k] for k in self.order or range(len(types))])
            return None if found is None else (found,)
        if not self.meaning.accepts(types):
            return None
        results = lower_composite(self.meaning, types).results
        return tuple(results[: len(results) - len(self.meaning.updates)])

    def takes(self, types: Sequence[Type]) -> bool:
        if isinstance(self.meaning, Op):
            return self.result(types) is not None
        return self.meaning.accepts(types)


def overloads(name: str) -> list[Overload]:
    """What a name means, in the order in which calls are resolved."""
    told = describe(name)
    out = []
    for c in candidates(name):
        op = OPS[c.op]
        doc = told[0] if c.order else op.doc if op.user == name else told[0]
        out.append(Overload(op, doc, _named(doc), c.order))
    for composite in COMPOSITES.get(name, ()):
        params = inspect.signature(composite.func).parameters.values()
        names = [
            p.name if p.default is p.empty else f"{p.name}={p.default}" for p in params
        ]  # fmt: skip
        out.append(Overload(composite, composite.doc, tuple(names)))
    return out


def _named(doc: str) -> tuple[str, ...]:
    found = re.match(r"\w+(?:<T>)?\(([^)]*)\)", doc)
    return tuple(n.strip() for n in found.group(1).split(",")) if found else ()


def _pool(s: ScalarType, arity: int) -> list[Type]:
    few: list[Type] = [s, *(VectorType(s, n) for n in (2, 3, 4)), INT32, UINT32]
    if arity > 4:
        return few
    tagged: list[Type] = [] if s.kind != "f" else [quat_type(s), transform_type(s)]
    few += [*tagged, ArrayType(s, 1), MatrixType(s, 2, 2), MatrixType(s, 3, 3), FLOAT32]
    if arity == 4:
        return few
    few += [
        BOOL,
        ArrayType(FLOAT32, 1),
        VectorType(s, 5),
        VectorType(s, 6),
        MatrixType(s, 4, 4),
        MatrixType(s, 2, 3),
    ]
    if arity == 3:
        return few
    every = [MatrixType(s, r, c) for r, c in itertools.product(SIZES, repeat=2)]
    return list(dict.fromkeys([*few, *every]))


def _dims(t: Type) -> tuple[int, ...]:
    if isinstance(t, MatrixType):
        return (t.rows, t.cols)
    return (t.length,) if isinstance(t, VectorType) and not t.tag else ()


def _resized(t: Type, sizes: dict[int, int]) -> Type:
    if isinstance(t, MatrixType):
        return MatrixType(t.scalar, sizes[t.rows], sizes[t.cols])
    if isinstance(t, VectorType) and not t.tag:
        return VectorType(t.scalar, sizes[t.length])
    return t


def _scaled(t: Type, s: ScalarType, to: ScalarType) -> Type:
    """The type with another scalar, where it has the scalar s."""
    if isinstance(t, ArrayType):
        return ArrayType(to, t.ndim) if t.element == s else t
    return with_scalar(t, to) if scalar_of(t) == s else t


def _general(o: Overload, types: Types) -> tuple[Types, dict[int, str]] | None:
    """The types with lengths that may be any, and letters for those; None where they may not."""
    found = list(dict.fromkeys(d for t in types for d in _dims(t)))
    if not found or len(found) > 3:
        return None
    for sizes in itertools.product(SIZES, repeat=len(found)):
        to = dict(zip(found, sizes, strict=True))
        if not o.takes([_resized(t, to) for t in types]):
            return None
    apart = dict(zip(found, (5, 4, 2), strict=False))
    letters = dict(zip((5, 4, 2), "NMK"[: len(found)], strict=False))
    return tuple(_resized(t, apart) for t in types), letters


@dataclass(frozen=True)
class Shape:
    """Argument types that an overload takes, as examples: which scalars, and letters for sizes."""

    types: Types
    scalar: ScalarType | None
    label: str
    letters: dict[int, str]


def shapes(o: Overload) -> Iterator[Shape]:
    """The kinds of arguments that an overload takes, the most general ones."""
    seen: set[Types] = set()
    plain: list[Types] = []
    for s in GENERIC:
        taken = [t for t in itertools.product(_pool(s, len(o.names)), repeat=len(o.names))
                 if o.takes(t)]  # fmt: skip
        # Those with the most different lengths first: they stand for the others.
        taken.sort(key=lambda types: -len({d for t in types for d in _dims(t)}))
        for types in taken:
            if s not in {_base(t) for t in types}:
                plain.append(types)
                continue
            general = _general(o, types)
            shown, letters = general or (types, {})
            tagged = any(isinstance(t, VectorType) and t.tag for t in shown)
            fits = frozenset(to for to in (KINDS["F"] if tagged else SCALARS.values())
                             if o.takes([_scaled(t, s, to) for t in shown]))  # fmt: skip
            key = tuple(_scaled(t, s, FLOAT64) for t in shown)
            covered = letters and any(_covers(old, key) for old in seen)
            if key not in seen and not covered:
                seen.add(key)
                yield Shape(shown, s, _label(fits), letters)
    concrete = [t for t in dict.fromkeys(plain) if not any(_same_form(t, k) for k in seen)]
    for types in concrete:
        yield Shape(types, None, "", {})


def _base(t: Type) -> ScalarType:
    return scalar_of(t.element) if isinstance(t, ArrayType) else scalar_of(t)


def _covers(general: Types, types: Types) -> bool:
    """Whether the second comes from the first by making lengths equal."""
    if len(general) != len(types):
        return False
    sizes: dict[int, int] = {}
    for a, b in zip(general, types, strict=True):
        if type(a) is not type(b) or len(_dims(a)) != len(_dims(b)) or _base(a) != _base(b):
            return False
        for m, n in zip(_dims(a), _dims(b), strict=True):
            if sizes.setdefault(m, n) != n:
                return False
    return True


def _same_form(types: Types, general: Types) -> bool:
    """Whether scalars of one type stand where the general form has its scalar."""
    if len(types) != len(general):
        return False
    swapped = {_base(a) for a, b in zip(types, general, strict=True) if _base(b) == FLOAT64}
    if len(swapped) != 1:
        return False
    (one,) = swapped
    return tuple(_scaled(t, FLOAT64, one) for t in general) == types and one != BOOL


def _label(fits: frozenset[ScalarType]) -> str:
    for letter, kinds in KINDS.items():
        if fits - {BOOL} == kinds:
            return letter
    return " | ".join(sorted(t.name for t in fits))


def written(t: Type, shape: Shape) -> str:
    """A type in a signature."""
    scalar = shape.label if shape.scalar is not None and _base(t) == shape.scalar else str(_base(t))

    def size(n: int) -> str:
        return shape.letters.get(n, str(n))

    if isinstance(t, ArrayType):
        return f"array[{scalar}]"
    if isinstance(t, MatrixType):
        return f"mat[{size(t.rows)}, {size(t.cols)}, {scalar}]"
    if isinstance(t, VectorType):
        return f"{t.tag}[{scalar}]" if t.tag else f"vec[{size(t.length)}, {scalar}]"
    return scalar


def signatures(name: str, o: Overload) -> list[str]:
    """One line for each kind of arguments."""
    rows: list[tuple[list[str], str]] = []
    for shape in sorted(shapes(o), key=lambda found: len(found.letters)):
        results = o.result(shape.types)
        assert results is not None
        given = [written(r, shape) for r in results]
        out = given[0] if len(given) == 1 else f"({', '.join(given)})" if given else "None"
        rows.append(([written(t, shape) for t in shape.types], out))
    return [f"{name}({_arguments(o.names, kinds)}) -> {out}" for kinds, out in _merged(rows)]


def _merged(rows: list[tuple[list[str], str]]) -> list[tuple[list[str], str]]:
    """Lines that differ in one argument alone, an integer type each, as one."""
    out: list[tuple[list[str], str]] = []
    for kinds, result in rows:
        for k, (other, its) in enumerate(out):
            apart = [j for j, (a, b) in enumerate(zip(kinds, other, strict=True)) if a != b]
            if its == result and len(apart) == 1 and kinds[apart[0]] in ("int32", "uint32"):
                j = apart[0]
                out[k] = ([*other[:j], f"{other[j]} | {kinds[j]}", *other[j + 1 :]], its)
                break
        else:
            out.append((kinds, result))
    return out if len(out) == len(rows) else _merged(out)


def _arguments(names: Sequence[str], kinds: Sequence[str]) -> str:
    out = []
    for name, kind in zip(names, kinds, strict=True):
        plain, equals, default = name.partition("=")
        out.append(f"{plain}: {kind}{f' = {default}' if equals else ''}")
    return ", ".join(out)

"""Resolves a call or an operator to an operation, by the types of its arguments.

Nothing converts by itself, except literals: an integer literal becomes any
numeric type, a float literal any float type, that the other arguments ask for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from engine.builtins.composite import COMPOSITES
from engine.classes import dataclass
from engine.ir.ops import OPS, OVERLOADS
from engine.lang.types import (
    FLOAT32,
    INT32,
    UINT32,
    ArrayType,
    MatrixType,
    ScalarType,
    Type,
    VectorType,
    scalar_of,
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """An operation, and which of the user's arguments each of its operands is."""

    op: str
    order: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a call means.

    op: the operation's name. order: operand k of the operation is the user's
    argument order[k]. casts: by the user's position, the scalar type that a
    literal must be made of, None where the argument stands as it is.
    """

    op: str
    result: Type
    order: tuple[int, ...]
    casts: tuple[ScalarType | None, ...]


_SWAPPED = Candidate("scale", (1, 0))
_PRODUCTS = tuple(Candidate(c) for c in ("matvec", "vecmat", "matmul"))

# Operators of the language; a unary operator shares the name of the binary one.
OPERATORS: dict[str, tuple[Candidate, ...]] = {
    "+": (Candidate("add"), Candidate("copy")),
    "-": (Candidate("sub"), Candidate("neg")),
    "*": (Candidate("mul"), Candidate("scale"), _SWAPPED, *_PRODUCTS),
    "@": _PRODUCTS,
    "/": (Candidate("div"), Candidate("unscale")),
    "//": (Candidate("floordiv"),),
    "%": (Candidate("mod"), Candidate("mod_vec")),
    "**": (Candidate("pow"),),
    "==": (Candidate("eq"),),
    "!=": (Candidate("ne"),),
    "<": (Candidate("lt"),),
    "<=": (Candidate("le"),),
    ">": (Candidate("gt"),),
    ">=": (Candidate("ge"),),
    "and": (Candidate("land"),),
    "or": (Candidate("lor"),),
    "not": (Candidate("lnot"),),
    "&": (Candidate("bitand"), Candidate("land"), Candidate("bitand_vec")),
    "|": (Candidate("bitor"), Candidate("lor"), Candidate("bitor_vec")),
    "^": (Candidate("bitxor"), Candidate("ne"), Candidate("bitxor_vec")),
    "<<": (Candidate("shl"), Candidate("shl_vec")),
    ">>": (Candidate("shr"), Candidate("shr_vec")),
    "~": (Candidate("invert"), Candidate("invert_vec")),
}

# Names that are not simply the overloads of one user name.
_SPECIAL: dict[str, tuple[Candidate, ...]] = {
    "mul": OPERATORS["*"],
    "pos": (Candidate("copy"),),
    # Of Warp: faster and less exact on a GPU. Here they are exact.
    "div_approx": OPERATORS["/"],
    "inverse_approx": (Candidate("inverse"),),
    # Deprecated in Warp: the value for a false condition comes first.
    "select": (Candidate("select", (0, 2, 1)), Candidate("where_int", (0, 2, 1))),
}


# Names that mean another one's operation, or take its arguments in another order.
_DOCS = {
    "pos": "pos(x): x itself.",
    "div_approx": "div_approx(a, b): the same as div(a, b), exact.",
    "inverse_approx": "inverse_approx(a): the same as inverse(a), exact.",
    "select": "select(cond, a, b): b where the condition holds, else a; where() reads better.",
}


def names() -> list[str]:
    """Every name that users can call, without operators, in order."""
    every = {*OVERLOADS, *_SPECIAL, *(n for n in COMPOSITES if n.isidentifier())}
    return sorted(n for n in every if not n.startswith("_"))


def candidates(user_name: str) -> tuple[Candidate, ...]:
    """The operations that a name or operator can mean; empty for an unknown one."""
    for table in (OPERATORS, _SPECIAL):
        if user_name in table:
            return table[user_name]
    return tuple(Candidate(op.name) for op in OVERLOADS.get(user_name, ()))


def describe(user_name: str) -> tuple[str, ...]:
    """What a name means, one sentence for each distinct overload; empty for an unknown one."""
    if user_name in _DOCS:
        return (_DOCS[user_name],)
    docs = [OPS[c.op].doc for c in candidates(user_name)]
    return tuple(dict.fromkeys(docs + [c.doc for c in COMPOSITES.get(user_name, ())]))


def ways_to_type(
    arg_types: Sequence[Type], weak: Sequence[bool]
) -> Iterator[tuple[ScalarType | None, ...]]:
    """Ways to type the literals, None for as it stands, the least change first."""
    targets: dict[ScalarType, None] = {}
    for t, w in zip(arg_types, weak, strict=True):
        # A literal too large for int32 comes as int64 and takes the others along.
        if (not w or t not in (INT32, FLOAT32)) and scalar_of(t).kind != "b":
            targets[scalar_of(t)] = None
    if any(weak):
        targets.setdefault(FLOAT32)
        targets.setdefault(UINT32)  # for functions of nothing else

    def options(t: Type, w: bool) -> list[ScalarType | None]:
        if not w or not isinstance(t, ScalarType) or t.kind == "b":
            return [None]
        fits = [s for s in targets if s != t and (t.kind != "f" or s.kind == "f")]
        return [None, *fits]

    every = [options(t, w) for t, w in zip(arg_types, weak, strict=True)]
    yield from sorted(
        itertools.product(*every), key=lambda choice: sum(c is not None for c in choice)
    )


def resolve(user_name: str, arg_types: Sequence[Type], weak: Sequence[bool]) -> Resolution | None:
    """The operation that `user_name` means for these types, or None where none fits.

    weak marks literals. They come with their own type (int32, float32 or bool) and
    take another only where the others, or the operation, ask for it: sqrt(2) is
    the root of the float32 2.0.
    """
    found = candidates(user_name)
    if not found:
        return None
    for casts in ways_to_type(arg_types, weak):
        types = [t if c is None else c for t, c in zip(arg_types, casts, strict=True)]
        for cand in found:
            order = cand.order or tuple(range(len(types)))
            if len(order) != len(types):
                continue
            result = OPS[cand.op].infer([types[k] for k in order])
            if result is not None:
                return Resolution(cand.op, result, order, casts)
    return None


# Help for a call that does not resolve.


def _conversion(t: ScalarType) -> str:
    return {"float32": "float", "int32": "int", "bool": "bool"}.get(t.name, t.name)


def _rank(t: ScalarType) -> tuple[bool, int, bool]:
    return (t.kind == "f", t.bits, t.kind == "i")


def _convert(user_name: str, types: Sequence[Type]) -> str:
    """Advice to convert scalars, where that alone would make the call fit."""
    present = {scalar_of(t) for t in types if scalar_of(t).kind != "b"}
    for target in (*sorted(present, key=_rank, reverse=True), FLOAT32):
        wrong = [
            k
            for k, t in enumerate(types)
            if isinstance(t, ScalarType) and t.kind != "b" and t != target
        ]
        retyped = [target if k in wrong else t for k, t in enumerate(types)]
        if resolve(user_name, retyped, [False] * len(types)) is None:
            continue
        which = " and ".join(f"argument {k + 1} ({types[k]})" for k in wrong)
        return f"convert {which}: write {_conversion(target)}(...) around it" if wrong else ""
    return ""


def _special_advice(user_name: str, types: Sequence[Type]) -> str:
    """Advice for mistakes that have a usual remedy."""
    kinds = [type(t) for t in types]
    if any(isinstance(t, ArrayType) for t in types):
        return "an array is not a value: index it first, as in a[i]"
    tags = [t.tag for t in types if isinstance(t, VectorType)]
    if user_name in ("*", "mul", "@") and tags[:1] == ["quat"] and tags[1:] == [""]:
        return "write quat_rotate(q, v) to rotate a vector"
    if user_name in ("*", "mul", "@") and tags[:1] == ["transform"] and tags[1:] == [""]:
        return (
            "write transform_point(t, p) for a position or transform_vector(t, v) for a direction"
        )
    if user_name in ("*", "mul") and kinds == [VectorType, VectorType] and not any(tags):
        return "write dot(a, b) for the inner product or cw_mul(a, b) for products of components"
    if user_name == "@" and kinds == [VectorType, VectorType] and not any(tags):
        return "write dot(a, b) for the inner product"
    if user_name in ("/", "div") and len(kinds) == 2 and kinds[1] in (VectorType, MatrixType):
        return "write cw_div(a, b) for quotients of components, or multiply by inverse(b)"
    if user_name in ("and", "or", "not"):
        return "a truth value comes from a comparison: write `x != 0`"
    return ""


def suggest(user_name: str, types: Sequence[Type]) -> str:
    """What to write instead of a call that `resolve` refuses: one sentence, or ""."""
    if not candidates(user_name) and user_name not in COMPOSITES:
        import difflib  # late: for messages alone

        close = difflib.get_close_matches(user_name, names(), 3)
        return f"did you mean {' or '.join(f'`{c}`' for c in close)}?" if close else ""
    advice = _special_advice(user_name, types) or _convert(user_name, types)
    if advice:
        return advice
    return "expected " + "; or ".join(d.rstrip(".") for d in describe(user_name))

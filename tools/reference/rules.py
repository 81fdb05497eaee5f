"""Derivatives as text: the rule of an operation builds IR, which is written as an expression."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from engine.builtins.resolve import OPERATORS
from engine.ir.builder import Builder, E, Names
from engine.ir.nodes import Atom, Const, Let, Var
from engine.ir.ops import OPS, Elementwise, NoDerivative, Op
from engine.lang.types import FLOAT64, INT32, MatrixType, Type, VectorType, is_float, quat_type

LONGEST = 140  # characters of an expression that is shown
_SIGNS: dict[str, str] = {}
for _sign, _found in OPERATORS.items():
    for _c in _found:
        _SIGNS.setdefault(_c.op, _sign)
_SIGNS |= {"scale": "*", "unscale": "/", "matvec": "*", "vecmat": "*", "matmul": "*", "land": "and",
           "lor": "or", "lnot": "not"}  # fmt: skip
_NAMES = {"select": "where", "ddot": "ddot", "copy": ""}
_STRENGTH = {"or": 1, "and": 2, "not": 3, "<": 4, "<=": 4, ">": 4, ">=": 4, "==": 4, "!=": 4,
             "+": 6, "-": 6, "*": 7, "/": 7, "%": 7, "//": 7, "neg": 8, "**": 9}  # fmt: skip
_ATOM = 10


def _number(value: object) -> str:
    if isinstance(value, tuple):
        flat = set(
            itertools.chain.from_iterable(v if isinstance(v, tuple) else (v,) for v in value)
        )
        return _number(flat.pop()) if len(flat) == 1 else str(value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


class _Writer:
    """The expressions of the temporaries of a block."""

    def __init__(self, lets: Sequence[Let]) -> None:
        self.lets = {let.dst: let for let in lets}

    def text(self, atom: Atom, around: int = 0) -> str:
        if isinstance(atom, Const):
            return _number(atom.value)
        if atom not in self.lets:
            return atom.name
        let = self.lets[atom]
        sign = _SIGNS.get(let.op)
        if let.op == "copy":
            return self.text(let.args[0], around)
        if sign and len(let.args) <= 2 and let.op != "copy":
            strength = _STRENGTH["neg" if let.op == "neg" else sign]
            parts = [self.text(a, strength + (k > 0)) for k, a in enumerate(let.args)]
            blank = f"{sign} " if sign == "not" else sign
            shown = f" {sign} ".join(parts) if len(parts) == 2 else blank + parts[0]
            return f"({shown})" if strength < around else shown
        args = [self.text(a) for a in let.args]
        if let.op in ("extract", "extract_row"):
            return f"{self.text(let.args[0], _ATOM)}[{', '.join(args[1:])}]"
        if let.op == "construct":
            return f"({', '.join(args)})"
        if let.op == "cast":
            return args[0]
        if let.op == "insert":
            return f"(0 but {args[-1]} at {', '.join(args[1:-1])})"
        name = _NAMES.get(let.op) or OPS[let.op].user or let.op
        return f"{name}({', '.join(args)})"


def _examples(op: Op, arity: int) -> tuple[Type, ...] | None:
    """Argument types to write the rule for: numbers where it takes them."""
    pool: list[Type] = [FLOAT64, VectorType(FLOAT64, 3), MatrixType(FLOAT64, 2, 2),
                        MatrixType(FLOAT64, 3, 3), quat_type(FLOAT64)]  # fmt: skip
    kinds = [[INT32, *pool] if op.name in ("where_int",) and not k else pool for k in range(arity)]
    for types in itertools.product(*kinds):
        if op.infer(types) is not None:
            return types
    return None


def derivative(op: Op, names: Sequence[str]) -> list[str]:
    """Lines about the derivative of an operation: the reason for none, or the rule."""
    d = op.derivative
    if isinstance(d, NoDerivative):
        return [f"Derivative: none, {d.reason}."]
    if op.name in ("select", "where_int"):
        return ["Derivative: the cotangent goes whole to the value that was chosen."]
    if op.name.endswith("_vec"):
        return ["Derivative: that of the function of numbers, by component."]
    types = _examples(op, len(names))
    if types is None:
        return ["Derivative: exact in both modes."]
    result = op.infer(types)
    assert result is not None
    plain = [n.partition("=")[0] for n in names]
    params = [Var(n, t) for n, t in zip(plain, types, strict=True)]
    b = Builder(Names([*plain, "g", "out"]))
    args = [b.e(p) for p in params]
    g, y = b.e(Var("g", result)), b.e(Var("out", result))
    found: Sequence[E | None]
    if isinstance(d, Elementwise):
        found = d.partials(args, y)
        form = "d/d{arg} = {text}"
    else:
        found = d.rule(g, args, y)
        form = "adjoint of {arg} = {text}"
    lets = [s for s in b.block() if isinstance(s, Let)]
    lines = []
    for name, t, e in zip(plain, types, found, strict=True):
        if not is_float(t):
            continue
        text = "0" if e is None else _Writer(lets).text(e.atom)
        lines.append(form.format(arg=name, text=text))
    if any(len(line) > LONGEST for line in lines):
        return [f"Derivative: exact in both modes, by a rule of {len(lets)} operations."]
    of = "" if isinstance(d, Elementwise) else ", for the cotangent `g` of the result"
    where = " (`out` is the result)" if any("out" in _words(line) for line in lines) else ""
    return [f"Derivative{of}{where}: " + "; ".join(f"`{line}`" for line in lines) + "."]


def _words(line: str) -> set[str]:
    text = line.partition("=")[2]
    return set("".join(c if c.isalnum() or c == "_" else " " for c in text).split())

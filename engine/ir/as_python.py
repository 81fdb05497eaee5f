"""Functions of numbers as Python code, for single runs: ten times as fast as the interpreter.

Every operation means what `Op.numpy` says, as in `interp`, with which tests compare all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NoReturn

import numpy as np

from engine.ir import nodes as n
from engine.ir.interp import InterpError, typed, zero
from engine.ir.ops import OPS
from engine.lang.types import ArrayType, ScalarType, Type, VectorType, scalar_of, shape_of

# What NumPy's scalars do by operators, in a tenth of its functions' time.
_OPERATORS = {"add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "neg": "-{}",
              "lt": "{} < {}", "le": "{} <= {}", "gt": "{} > {}", "ge": "{} >= {}"}  # fmt: skip
_OF_INTEGERS = {**_OPERATORS, "bitand": "{} & {}", "bitor": "{} | {}", "bitxor": "{} ^ {}"}
Evaluation = Callable[..., tuple[Any, ...]]


class _Unknown(Exception):
    """There is something in it that is not written here."""


def as_python(fn: n.Function) -> Evaluation | None:
    """A function that takes NumPy values, and gives a tuple of them, as `interp.evaluate` does.

    None where it is to be interpreted: it has arrays, messages or what adjoints have.
    """
    try:
        return _Writer().function(fn)
    except _Unknown:
        return None


class _Writer:
    """Writes one function. Its names are numbered, whatever variables are called."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._names: dict[str, str] = {}
        self._known: dict[str, Any] = {}
        self._constants: dict[int, str] = {}
        # Components that were taken in this block or around it, of what does not change.
        self._taken: dict[tuple[str, int], str] = {}

    def function(self, fn: n.Function) -> Evaluation:
        if fn.native is not None or fn.derivative_of is not None or fn.is_kernel:
            raise _Unknown
        args = ", ".join(self._name(p) for p in fn.params)
        changing = {v.name: v for s in n.walk(fn.body) for v in _variables(s) if v.mutable}
        for v in changing.values():
            if v.name not in self._names:
                self._line(1, f"{self._name(v)} = {self._held(zero(v.type))}")
        self._block(fn.body, 1)
        self._line(1, f"{self._held(partial(_ended, fn))}()" if fn.results else "return ()")
        text = "\n".join([f"def evaluate({args}):", *self._lines])
        exec(compile(text, f"<{fn.name}>", "exec"), self._known)  # of the engine's own IR
        inner: Evaluation = self._known["evaluate"]
        return inner

    def _line(self, depth: int, text: str) -> None:
        self._lines.append("    " * depth + text)

    def _name(self, v: n.Var) -> str:
        if isinstance(v.type, ArrayType):
            raise _Unknown
        return self._names.setdefault(v.name, f"v{len(self._names)}")

    def _held(self, thing: Any) -> str:
        """The name of something that the code uses as it is."""
        name = f"k{len(self._known)}"
        self._known[name] = thing
        return name

    def _atom(self, a: n.Atom) -> str:
        if isinstance(a, n.Var):
            if a.name not in self._names:
                raise _Unknown
            return self._names[a.name]
        if id(a) not in self._constants:
            self._constants[id(a)] = self._held(typed(a.value, a.type))
        return self._constants[id(a)]

    def _block(self, block: Iterable[n.Stmt], depth: int) -> None:
        begun, around = len(self._lines), dict(self._taken)
        for s in block:
            self._statement(s, depth)
        self._taken = around
        if len(self._lines) == begun:
            self._line(depth, "pass")

    def _statement(self, s: n.Stmt, depth: int) -> None:
        if isinstance(s, n.Let):
            self._let(s, depth)
        elif isinstance(s, n.Set):
            self._line(depth, f"{self._name(s.dst)} = {self._atom(s.value)}")
        elif isinstance(s, n.If):
            self._line(depth, f"if {self._atom(s.cond)}:")
            self._block(s.then, depth + 1)
            if s.orelse:
                self._line(depth, "else:")
                self._block(s.orelse, depth + 1)
        elif isinstance(s, n.For):
            start, stop, step = (self._atom(x) for x in (s.start, s.stop, s.step))
            turns = f"range(int({start}), int({stop}), int({step})) if int({step}) else ()"
            self._line(depth, f"for turn in {turns}:")
            number = self._held(scalar_of(s.var.type).numpy.type)
            self._line(depth + 1, f"{self._name(s.var)} = {number}(turn)")
            self._block(s.body, depth + 1)
        elif isinstance(s, n.While):
            self._line(depth, "while True:")
            self._block(s.test, depth + 1)
            self._line(depth + 1, f"if not {self._atom(s.cond)}: break")
            self._block(s.body, depth + 1)
        elif isinstance(s, n.Break):
            self._line(depth, "break")
        elif isinstance(s, n.Continue):
            self._line(depth, "continue")
        elif isinstance(s, n.Return):
            values = "".join(f"{self._atom(v)}, " for v in s.values)
            self._line(depth, f"return ({values})")
        elif isinstance(s, n.Call):
            called = self._held(_Writer().function(s.func))
            into = "".join(f"{self._name(v)}, " for v in s.dsts)
            args = ", ".join(map(self._atom, s.args))
            self._line(depth, f"{f'({into}) = ' if into else ''}{called}({args})")
        else:
            raise _Unknown

    def _let(self, s: n.Let, depth: int) -> None:
        if s.op in ("tid", "thread"):
            raise _Unknown
        args = [self._atom(a) for a in s.args]
        at = s.args[1:]
        if s.op == "extract" and len(at) == 1 and _is_inside(at[0], s.args[0].type):
            self._extract(s, args[0], depth)
            return
        name, kind = self._name(s.dst), s.dst.type
        if s.op in _OPERATORS and all(_is_real(a.type) for a in s.args):
            self._line(depth, f"{name} = {_OPERATORS[s.op].format(*args)}")
            return
        if s.op in _OF_INTEGERS and all(_is_integer(a.type) for a in s.args):
            self._line(depth, f"{name} = {_OF_INTEGERS[s.op].format(*args)}")
            return
        op = OPS[s.op]
        before = [self._held(kind)] if op.explicit else []
        self._line(depth, f"{name} = {self._held(op.numpy)}({', '.join([*before, *args])})")
        if isinstance(kind, ScalarType):
            number = self._held(kind.numpy.type)
            self._line(depth, f"if {name}.__class__ is not {number}: {name} = {number}({name})")
        else:
            assert not isinstance(kind, ArrayType)
            dtype, shape = self._held(scalar_of(kind).numpy), self._held(shape_of(kind))
            anew = f"{name} = {self._held(typed)}({name}, {self._held(kind)})"
            self._line(depth, f"if {name}.dtype is not {dtype} or {name}.shape != {shape}: {anew}")

    def _extract(self, s: n.Let, of: str, depth: int) -> None:
        source, index = s.args[0], int(s.args[1].value)  # type: ignore[union-attr,arg-type]
        still = not (s.dst.mutable or (isinstance(source, n.Var) and source.mutable))
        if still and (of, index) in self._taken:
            self._names[s.dst.name] = self._taken[of, index]
            return
        name = self._name(s.dst)
        self._line(depth, f"{name} = {of}[{index}]")
        if still:
            self._taken[of, index] = name


def _ended(fn: n.Function) -> NoReturn:
    raise InterpError(f"{fn.name} ended without returning a value", fn.span)


def _variables(s: n.Stmt) -> list[n.Var]:
    return [x for x in (*n.defs_of(s), *n.uses_of(s)) if isinstance(x, n.Var)]


def _is_real(kind: Type) -> bool:
    """Whether NumPy's scalars of a type are C's own."""
    return isinstance(kind, ScalarType) and kind.name in ("float32", "float64")


def _is_integer(kind: Type) -> bool:
    """The same of integers, which wrap without a word where nobody wants to hear of it."""
    return isinstance(kind, ScalarType) and kind.kind in "iu"


def _is_inside(index: n.Atom, kind: Type) -> bool:
    return (
        isinstance(index, n.Const) and isinstance(kind, VectorType)
        and kind.scalar.numpy.kind in "biuf" and 0 <= int(index.value) < kind.length  # type: ignore[arg-type]
    )  # fmt: skip


def quietly(evaluation: Evaluation, args: Iterable[Any]) -> tuple[Any, ...]:
    """Evaluates: what has no finite value is no error."""
    with np.errstate(all="ignore"):
        return evaluation(*args)

"""Reads kernels from data. Every name, type and number is validated, and the IR is verified."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast, get_args

from engine import builtins as _operations  # fills the table of operations, which IR names
from engine.archive.code_writer import STATEMENTS, fields_of, is_tuple
from engine.archive.data import (
    ArchiveError,
    AtomData,
    FunctionData,
    KernelData,
    NamedType,
    NativeData,
    StatementData,
)
from engine.archive.numbers import constant
from engine.archive.places import FileReader
from engine.archive.types import TypeReader, name_of
from engine.compile.pipeline import Variants
from engine.diagnostics import UNKNOWN, EngineError, Span
from engine.ir import nodes as n
from engine.ir.unassigned import UnassignedRead
from engine.ir.verify import VerifyError, verify
from engine.lang.structs import Argument, leaves
from engine.runtime.device import HOST
from engine.runtime.kernel import Kernel
from engine.runtime.plan import Plan

assert _operations
_DEEPEST = 200  # blocks in blocks
_FORMAT = re.compile(r"|%[-+ #0]{0,4}[0-9]{0,2}(?:\.[0-9]{1,2})?[a-zA-Z]|:[^{}\n]{0,16}")
_LONG = re.compile(r"[0-9]{3}")


class UntrustedCode(Exception):
    """A kernel has C++ text, in a function of a name, and nobody said that it may be compiled."""

    def __init__(self, function: str, span: Span) -> None:
        super().__init__(function)
        self.span = span


class ArchivedKernel:
    """A kernel that was launched elsewhere: its name, and whether it has an adjoint."""

    def __init__(self, data: KernelData) -> None:
        self.key = name_of(data.name)
        self.enable_backward = data.enable_backward

    def __repr__(self) -> str:
        return f"<kernel {self.key} of an archive>"


class CodeReader:
    """Reads functions and kernels. Raises ArchiveError.

    trust: whether C++ text in them may be compiled.
    """

    def __init__(
        self, functions: Sequence[FunctionData], files: FileReader, types: TypeReader, trust: bool
    ) -> None:
        self._files, self._types, self._trust = files, types, trust
        self._functions: list[n.Function] = []
        self._untrusted: list[bool] = []
        for number, data in enumerate(functions):
            try:
                self._functions.append(self._function(data))
            except ArchiveError as error:
                raise ArchiveError(f"function {number}: {error}") from None

    @staticmethod
    def bare(data: KernelData) -> Kernel:
        """A kernel of which only the name is known."""
        return cast(Kernel, ArchivedKernel(data))

    def plan(self, data: KernelData) -> Plan:
        """A kernel, ready to be checked.

        Raises UntrustedCode, saying of which function the text is.
        """
        if not 0 <= data.function < len(self._functions):
            raise ArchiveError(f"kernel {data.name[:40]!r}: there is no function {data.function}")
        fn = self._functions[data.function]
        if not fn.is_kernel or fn.results:
            raise ArchiveError(f"function {data.function} is not a kernel")
        native = [f for f in (fn, *_all(fn)) if f.native is not None]
        if native and not self._trust:
            raise UntrustedCode(native[0].name, fn.span)
        kernel = self.bare(data)
        try:
            verify(fn)
            for f in _all(fn):
                verify(f)
            plan = Plan(kernel, Variants(fn), HOST.backend)
        except VerifyError as error:
            raise ArchiveError(f"kernel {kernel.key!r}: {error.problem}") from None
        except EngineError as error:
            problem = error.diagnostics[0].message
            raise ArchiveError(f"kernel {kernel.key!r}: {problem}") from None
        except (RecursionError, KeyError, IndexError, AssertionError) as error:
            raise ArchiveError(f"kernel {kernel.key!r} is damaged ({error})") from None
        plan.variants.name, plan.variants.debug = kernel.key, data.debug
        return plan

    # ---- functions

    def _callee(self, number: int) -> n.Function | None:
        if number == -1:
            return None
        if not 0 <= number < len(self._functions):
            raise ArchiveError(f"it names function {number}, which does not come before it")
        return self._functions[number]

    def _function(self, data: FunctionData) -> n.Function:
        atoms = [self._atom(a) for a in data.atoms]
        body = self._block(data.body, atoms, 0)
        params = [_at(atoms, k) for k in data.params]
        if not all(isinstance(p, n.Var) for p in params):
            raise ArchiveError("a parameter is a constant")
        arguments = self._arguments(data.arguments, params)
        return n.Function(
            name_of(data.name), cast(Any, tuple(params)),
            tuple(self._types.value(t) for t in data.results), body, data.is_kernel,
            self._files.span(data.span) or UNKNOWN, self._callee(data.grad),
            self._callee(data.replay), tuple(map(name_of, data.gradients)),
            self._native(data.native), None, (), data.mirrored, arguments, (),
            tuple(UnassignedRead(name_of(u.name), tuple(map(name_of, u.variables)),
                                 self._files.span(u.span) or UNKNOWN) for u in data.unassigned),
        )  # fmt: skip

    def _arguments(
        self, data: Sequence[NamedType], params: Sequence[n.Atom]
    ) -> tuple[Argument, ...]:
        out = tuple(Argument(name_of(a.name), self._types.user(a.type)) for a in data)
        if out:
            parts = [(x.named(a.name), x.type) for a in out for x in leaves(a.type)]
            if parts != [(p.name, p.type) for p in params if isinstance(p, n.Var)]:
                raise ArchiveError("its arguments do not match its parameters")
        return out

    def _native(self, data: NativeData | None) -> n.Native | None:
        if data is None:
            return None
        return n.Native(
            data.text, frozenset(data.reads), frozenset(data.writes), frozenset(data.updates),
            data.inputs, frozenset(data.absent), data.pure,
        )  # fmt: skip

    def _atom(self, data: AtomData) -> n.Atom:
        if data.name:
            return n.Var(name_of(data.name), self._types.ir(data.type), data.mutable)
        kind = self._types.value(data.type)
        return n.Const(constant(data.numbers, kind), kind)

    # ---- statements

    def _block(self, block: Sequence[StatementData], atoms: Sequence[n.Atom], depth: int
               ) -> n.Block:  # fmt: skip
        if depth > _DEEPEST:
            raise ArchiveError(f"its blocks are nested more than {_DEEPEST} times")
        return tuple(self._statement(s, atoms, depth) for s in block)

    def _statement(self, data: StatementData, atoms: Sequence[n.Atom], depth: int) -> n.Stmt:
        kind = STATEMENTS.get(data.kind)
        if kind is None:
            raise ArchiveError(f"there is no statement {data.kind[:40]!r}")
        names = fields_of(kind)
        if len(data.atoms) != len(names) or len(data.blocks) != len(kind.NESTED):
            raise ArchiveError(f"a {data.kind} has other parts")
        values: dict[str, Any] = {"span": self._files.span(data.span) or UNKNOWN}
        for k, name in enumerate(names):
            found = tuple(_at(atoms, a) for a in data.atoms[k])
            if k in data.absent:
                values[name] = None
            elif is_tuple(kind, name):
                values[name] = found
            elif len(found) == 1:
                values[name] = found[0]
            else:
                raise ArchiveError(f"a {data.kind} has {len(found)} operands instead of one")
        _require_parts(kind, values)
        for name, block in zip(kind.NESTED, data.blocks, strict=True):
            values[name] = self._block(block, atoms, depth + 1)
        if kind is n.Let:
            values["op"] = data.word
        elif kind is n.Atomic:
            values["kind"] = _word(data.word, n.AtomicKind)
        elif kind is n.Message:
            values |= _message(data)
        elif kind is n.Call:
            callee = self._callee(data.func)
            if callee is None:
                raise ArchiveError("a call names no function")
            values["func"] = callee
        return kind(**values)


_OPTIONAL = {n.Atomic: ("dst", "compare"), n.Message: ("thread",)}
_VARIABLES = ("dst", "dsts", "array", "var")


def _require_parts(kind: type[n.Stmt], values: dict[str, Any]) -> None:
    for name, value in values.items():
        if value is None and name not in _OPTIONAL.get(kind, ()):
            raise ArchiveError(f"a {kind.__name__} lacks its {name}")
        if name in _VARIABLES and value is not None:
            many = value if isinstance(value, tuple) else (value,)
            if not all(isinstance(v, n.Var) for v in many):
                raise ArchiveError(f"the {name} of a {kind.__name__} is a constant")


def _message(data: StatementData) -> dict[str, Any]:
    for f in data.formats:
        if _FORMAT.fullmatch(f) is None or _LONG.search(f):
            raise ArchiveError(f"{f[:40]!r} is not a format")
    return {
        "kind": _word(data.word, n.MessageKind), "pieces": data.pieces, "formats": data.formats,
    }  # fmt: skip


def _word(word: str, kinds: Any) -> Any:
    if word not in get_args(kinds):
        raise ArchiveError(f"{word[:40]!r} is not one of {', '.join(get_args(kinds))}")
    return word


def _at(atoms: Sequence[n.Atom], k: int) -> n.Atom:
    if not 0 <= k < len(atoms):
        raise ArchiveError(f"there is no atom {k}")
    return atoms[k]


def _all(fn: n.Function) -> list[n.Function]:
    """All that a function needs: what it calls, gradients and replays."""
    found: dict[int, n.Function] = {}
    todo = [fn]
    while todo:
        f = todo.pop()
        calls = [s.func for s in n.walk(f.body) if isinstance(s, n.Call)]
        for g in (*calls, f.grad, f.replay):
            if g is not None and id(g) not in found:
                found[id(g)] = g
                todo.append(g)
    return list(found.values())

"""Native functions: `@func_native(snippet, adj_snippet, replay_snippet)`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from engine.diagnostics import Diagnostic, EngineError, KernelError, Span
from engine.frontend.kinds import AbsentKind, Kind, StructKind, ViewKind
from engine.frontend.native_access import access
from engine.frontend.operands import Known
from engine.frontend.results import value_type
from engine.frontend.typenames import type_name
from engine.frontend.userfunc import UserFunc
from engine.ir.nodes import Function, Native, Var
from engine.lang.structs import COMPOUND, UserType
from engine.lang.types import (
    ArrayType,
    MatrixType,
    ScalarType,
    Type,
    ValueType,
    VectorType,
    is_float,
)

# Names that C++ keeps for itself, among those that Python allows.
_KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """
        alignas alignof auto bool case catch char concept const constexpr decltype default
        delete do double enum explicit export extern float friend goto inline int long mutable
        namespace new noexcept nullptr operator private protected public register requires short
        signed sizeof static struct switch template this throw try typedef typeid typename union
        unsigned using virtual void volatile wp eng
        """,
    )
)


@dataclass(frozen=True, slots=True)
class Snippets:
    """The C++ of a native function, its adjoint and its replay; None where there is none."""

    forward: str
    adjoint: str | None = None
    replay: str | None = None


class NativeFunc(UserFunc):
    """A function whose body is C++."""

    def __init__(
        self, func: Callable[..., Any], snippets: Snippets, before: UserFunc | None = None
    ) -> None:
        self.snippets = snippets
        super().__init__(func, before)

    def __call__(self, *args: Any, **named: Any) -> Any:
        raise EngineError(
            Diagnostic(
                "E106",
                f"native function `{self.name}` was called outside a kernel",
                help="call it in a function decorated with @kernel or @func",
            )
        )

    def _lower(self, types: tuple[Kind, ...]) -> Function:
        self._check(types)
        made = self.prepared()
        named = dict(zip(made.annotated, types, strict=True))
        params = tuple(Var(n, _plain(t)) for n, t in named.items())
        results = tuple(value_type(_plain(t)) for t in made.results or ())
        grad = None
        if self.snippets.adjoint is not None:
            grad = self._adjoint(params, results, self.snippets.adjoint)
        primal = self._function(self.name, params, results, self.snippets.forward)
        replay = None
        if self.snippets.replay is not None:
            replay = self._function(f"{self.name}_replay", params, results, self.snippets.replay)
        return self._with_custom(replace(primal, grad=grad, replay=replay), types)

    def _function(
        self, name: str, params: tuple[Var, ...], results: tuple[ValueType, ...], text: str
    ) -> Function:
        found = access(text, [p.name for p in params if isinstance(p.type, ArrayType)])
        native = Native(text, found.reads, found.writes, found.updates)
        return Function(name, params, results, (), span=self.span(), native=native)

    def _adjoint(
        self, params: tuple[Var, ...], results: tuple[ValueType, ...], text: str
    ) -> Function:
        floats = [p for p in params if is_float(p.type)]
        inputs = [p for p in floats if not isinstance(p.type, ArrayType)]
        arrays = [p for p in floats if isinstance(p.type, ArrayType)]
        cotangents = [Var("adj_ret", t) for t in results]
        gradients = [Var(f"adj_{p.name}", p.type) for p in arrays]
        given = (*params, *cotangents, *gradients)
        # Only what it does to gradients counts: primal arrays are there to be read.
        touched = frozenset(g.name for g in gradients)
        native = Native(
            text,
            reads=frozenset(p.name for p in given if isinstance(p.type, ArrayType)),
            writes=touched,
            inputs=tuple(p.name for p in inputs),
        )
        return Function(
            f"adj_{self.name}",
            given,
            tuple(value_type(p.type) for p in inputs),
            (),
            span=self.span(),
            gradients=tuple(p.name for p in arrays),
            native=native,
        )

    def span(self) -> Span:
        """The line of the decorator; that of the `def` where there is none."""
        source = self.prepared().source
        for d in source.tree.decorator_list:
            name = d.func if isinstance(d, ast.Call) else d
            if getattr(name, "attr", getattr(name, "id", "")) == "func_native":
                whole, called = source.span(d), source.span(name)
                end = whole.end_col if whole.end_line == whole.line else called.end_col
                return replace(whole, end_line=whole.line, end_col=end)
        return source.header()

    def _check(self, types: tuple[Kind, ...]) -> None:
        """The stub and its signature. Raises KernelError."""
        made = self.prepared()
        made.report.check()
        source = made.source
        snippets = self.snippets
        for s in source.tree.body:
            idle = isinstance(s, (ast.Pass, ast.Return)) and getattr(s, "value", None) is None
            if not idle and not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)):
                raise _wrong(
                    self, "E106", "has a body besides its snippet", "write `...` as its body"
                )
        if "return" in self.func.__annotations__ and made.results is None:
            raise _wrong(
                self, "E103", "has a result of no single type", "annotate it with one type"
            )
        if made.results and isinstance(made.results[0], COMPOUND):
            raise _wrong(
                self,
                "E103",
                "returns a struct",
                "return a vector, or store into an array parameter",
            )
        if made.results and len(made.results) > 1:
            raise _wrong(
                self,
                "E103",
                f"has {len(made.results)} results",
                "return one value, a vector perhaps, or store the others into an array parameter",
            )
        for name, t in zip(made.annotated, types, strict=True):
            if isinstance(t, Known):
                raise _wrong(self, "E104", f"cannot take a function as `{name}`", "pass a value")
            if isinstance(t, (StructKind, ViewKind, AbsentKind)):
                what = "a part of an array" if isinstance(t, ViewKind) else "a struct"
                raise _wrong(
                    self,
                    "E104",
                    f"cannot take {what} ({type_name(t)}) as `{name}`",
                    "pass the fields" if what == "a struct" else "pass the array and the indices",
                )
            if name in _KEYWORDS or name.startswith(("adj_", "v_")):
                raise KernelError(
                    Diagnostic(
                        "E103",
                        f"parameter `{name}` of native function `{self.name}` has a name that "
                        "its C++ text cannot use",
                        source.parameter(name),
                        "choose another name: C++ keywords, `adj_...` and `v_...` are taken",
                    )
                )
        texts = {"snippet": snippets.forward, "replay_snippet": snippets.replay}
        for what, text in texts.items():
            if made.results and text is not None and not re.search(r"\breturn\b", text):
                raise _wrong(
                    self,
                    "E109",
                    f"has a result, but its {what} has no `return`",
                    "return the result, or remove the annotation of it",
                )


def _plain(t: Kind | UserType) -> Type:
    assert isinstance(t, (ScalarType, VectorType, MatrixType, ArrayType))
    return t


def _wrong(f: NativeFunc, code: str, message: str, help_text: str) -> KernelError:
    return KernelError(
        Diagnostic(code, f"native function `{f.name}` {message}", f.span(), help_text)
    )

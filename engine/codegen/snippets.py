"""Native functions: the user's C++ inside a function whose parameters have the user's names."""

from __future__ import annotations

from collections.abc import Sequence

from engine.codegen.spelling import local
from engine.ir import nodes as n
from engine.lang.ctypes_ import ctype
from engine.lang.types import ArrayType, ScalarType, Type

# Around the user's lines, so that what a compiler says of them can be told from the rest.
BEGIN, END = "// snippet of ", "// end of snippet"


def has_snippets(fn: n.Function) -> bool:
    """Whether a kernel calls a native function."""
    return any(f.native is not None for f in n.callees(fn))


def snippet_body(f: n.Function, result: str) -> list[str]:
    """The lines between the braces of a native function. result: the C++ type it returns."""
    assert f.native is not None
    native = f.native
    out = ["    using namespace wp;"]
    if native.inputs is None:
        out += [_seen(f, p) for p in f.params]
        return [*out, *_text(f)]
    cotangents = [p.name for p in f.params if p.name.startswith("adj_") and not _is_array(p)]
    own = {p.name for p in f.params}
    for p in f.params:
        gradient = _is_array(p) and p.name.startswith("adj_")
        out.append(_seen(f, p, gradient))
        adjoint = f"adj_{p.name}"
        if p.name in native.inputs:
            out.append(f"    {_type(p.type)} {adjoint}{{}};")
        elif adjoint not in own and p.name not in cotangents and not gradient:
            # It has no derivative, but snippets may name it.
            out.append(f"    [[maybe_unused]] {_nothing(p.type)} {adjoint}{{}};")
    for name in cotangents:
        out.append(f"    [[maybe_unused]] const auto& {name}_0 = {name};")
    # A function of its own, so that the snippet may return early.
    out += ["    [&]() {", *_text(f), "    }();"]
    results = [f"adj_{name}" for name in native.inputs]
    if len(results) > 1:
        out.append(f"    return {result}{{{', '.join(results)}}};")
    elif results:
        out.append(f"    return {results[0]};")
    return out


def _is_array(p: n.Var) -> bool:
    return isinstance(p.type, ArrayType)


def _text(f: n.Function) -> Sequence[str]:
    assert f.native is not None
    return [f"{BEGIN}{f.name}", *f.native.text.strip("\n").splitlines(), END]


def _type(t: Type) -> str:
    """A value's type as snippets see it."""
    assert not isinstance(t, ArrayType)
    return ctype(t) if isinstance(t, ScalarType) else f"wp::seen<{ctype(t)}>"


def _nothing(t: Type) -> str:
    if not isinstance(t, ArrayType):
        return _type(t)
    return f"wp::array_t<{_type(t.element)}, {t.ndim}, FLAT, true, false>"


def _seen(f: n.Function, p: n.Var, gradient: bool = False) -> str:
    """Declares a parameter under the user's name."""
    name, given = p.name, local(p)
    if not isinstance(p.type, ArrayType):
        return f"    [[maybe_unused]] {_type(p.type)} {name} = {given};"
    assert f.native is not None
    absent, guarded = name in f.native.absent, f.native.guarded
    element = _type(p.type.element)
    flags = f"{'true' if gradient else 'false'}, {'true' if guarded else 'false'}"
    spare = ""
    if absent or guarded:
        spare = f"{element} {name}_spare{{}}; "
        given += f", &{name}_spare, {'true' if absent else 'false'}"
    kind = f"wp::array_t<{element}, {p.type.ndim}, FLAT, {flags}>"
    return f"    {spare}[[maybe_unused]] const {kind} {name}({given});"

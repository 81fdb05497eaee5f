"""Native functions: the user's C++ in a function with the user's parameter names."""

from __future__ import annotations

from collections.abc import Sequence

from engine.classes import dataclass
from engine.codegen.spelling import array_type, local
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
        out += _declared([_seen(f, p) for p in f.params])
        return [*out, *(_changing(f, result) if native.references else _text(f))]
    cotangents = [p.name for p in f.params if p.name.startswith("adj_") and not _is_array(p)]
    own = {p.name for p in f.params}
    gradients = {p.name: _seen(f, p, True) for p in f.params
                 if _is_array(p) and p.name.startswith("adj_")}  # fmt: skip
    primals = [p for p in f.params if p.name not in gradients]
    out += _declared([_seen(f, p) for p in primals])
    adjoints: list[_Declared] = []  # in the order of the primals, for structs
    for p in primals:
        name = f"adj_{p.name}"
        if name in gradients:
            adjoints.append(gradients[name])
        elif name in own:
            continue  # of a reference, which is declared above
        elif p.name in native.inputs:
            adjoints.append(_Declared(_type(p.type), name))
        elif p.name not in cotangents:
            # It has no derivative, but snippets may name it.
            adjoints.append(_Declared(_nothing(p.type), name))
    out += _declared(adjoints)
    for name in cotangents:
        out.append(f"    [[maybe_unused]] const auto& {name}_0 = {name};")
    if native.before:
        out += ["    [&]() {", *native.before.strip("\n").splitlines(), "    }();"]
    # A function of its own, so that the snippet may return early.
    out += ["    [&]() {", *_text(f), "    }();"]
    results = [f"adj_{name}" for name in native.inputs]
    if len(results) > 1:
        out.append(f"    return {result}{{{', '.join(results)}}};")
    elif results:
        out.append(f"    return {results[0]};")
    return out


def _changing(f: n.Function, result: str) -> list[str]:
    """The text of a function that changes its parameters, which are its last results."""
    assert f.native is not None
    changed = list(f.native.references)
    if len(f.results) == len(changed):
        out = ["    [&]() {", *_text(f), "    }();"]
    else:
        out = [
            f"    const auto returned = [&]() -> {_type(f.results[0])} {{",
            *_text(f),
            "    }();",
        ]
        changed.insert(0, "returned")
    if len(changed) == 1:
        return [*out, f"    return {changed[0]};"]
    return [*out, f"    return {result}{{{', '.join(changed)}}};"]


@dataclass(frozen=True)
class _Declared:
    """A variable that snippets see: its type, its name and what it is made from; else it is zero.

    name: of a field of a struct with the struct before it. before: a statement that it needs.
    """

    type: str
    name: str
    value: str = ""
    before: str = ""


def _declared(variables: Sequence[_Declared]) -> list[str]:
    """The declarations; fields of one struct make one variable."""
    out = [f"    {d.before}" for d in variables if d.before]
    done: set[str] = set()
    for d in variables:
        root = d.name.partition(".")[0]
        if "." not in d.name:
            value = f"({d.value})" if d.value else "{}"
            out.append(f"    [[maybe_unused]] {d.type} {d.name}{value};")
        elif root not in done:
            done.add(root)
            fields = [(x.name.split(".")[1:], x) for x in variables
                      if x.name.startswith(f"{root}.")]  # fmt: skip
            body, values = _struct(fields)
            out.append(f"    [[maybe_unused]] struct {{ {body} }} {root}{{{values}}};")
    return out


def _struct(fields: Sequence[tuple[list[str], _Declared]]) -> tuple[str, str]:
    """The members of a struct and the values that they are made from, in order."""
    members: list[str] = []
    values: list[str] = []
    for name in dict.fromkeys(path[0] for path, _ in fields):
        own = [(path[1:], d) for path, d in fields if path[0] == name]
        d = own[0][1]
        if own[0][0]:
            body, inner = _struct(own)
            members.append(f"struct {{ {body} }} {name};")
            values.append(f"{{{inner}}}")
        else:
            members.append(f"{d.type} {name};")
            values.append(f"{d.type.removeprefix('const ')}({d.value})")
    return " ".join(members), ", ".join(values)


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
    return f"wp::array_t<{_type(t.element)}, {t.ndim}, false, true, false>"


def _seen(f: n.Function, p: n.Var, gradient: bool = False) -> _Declared:
    """A parameter under the user's name."""
    name, given = p.name, local(p)
    if not isinstance(p.type, ArrayType):
        return _Declared(_type(p.type), name, given)
    assert f.native is not None
    absent, guarded = name in f.native.absent, f.native.guarded
    element = _type(p.type.element)
    flags = f"{'true' if gradient else 'false'}, {'true' if guarded else 'false'}"
    spare = ""
    if absent or guarded:
        other = f"{name.replace('.', '_')}_spare"
        spare = f"{element} {other}{{}};"
        given += f", &{other}, {'true' if absent else 'false'}"
    kind = f"wp::array_t<{element}, {p.type.ndim}, {array_type(p)}::flat, {flags}>"
    return _Declared(f"const {kind}", name, given, spare)

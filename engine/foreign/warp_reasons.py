"""Known causes of wrong Warp gradients, found in the text of a kernel.

Each is something that Warp's documents or its issue tracker tell of, and that is in the text. Which
of several it is, nobody has tried; they come with the likeliest first.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType
from typing import Any

from engine.autograd.facts import Reason
from engine.classes import dataclass
from engine.diagnostics import Span
from engine.diagnostics.site import column
from engine.foreign.warp_kernels import kind_of
from engine.reading import getline, getlines

# Functions without an adjoint that have no derivative either.
_FLAT = re.compile(
    r"tid|printf?|len|sign|step|nonzero|floor\w*|ceil|round|rint|trunc|argm(in|ax)|is(nan|inf|finite)|"
    r"rand\w*|sample_\w+|poisson|lower_bound|expect_\w+|zeros|\w*identity|static|block_dim|bit_\w+|"
    r"select|cast|u?int\d*|bool|[lr]shift|invert|unot|range|reversed|iter_next|tuple|slice|array"
)
_DEPTH = 4


@dataclass(frozen=True)
class _Text:
    """A function that a kernel runs, with what its names mean."""

    file: str
    tree: ast.FunctionDef
    names: dict[str, Any]

    def span(self, node: ast.stmt | ast.expr) -> Span:
        """The place of a node; of a statement with a body, the line that it begins on."""
        line, end = node.lineno, node.end_lineno or node.lineno
        first = column(self.file, line, node.col_offset)
        if end == line or not isinstance(node, ast.stmt):
            return Span(self.file, line, first, end,
                        column(self.file, end, node.end_col_offset or 0))  # fmt: skip
        text = getline(self.file, line).rstrip()
        return Span(self.file, line, first, line, max(first + 1, len(text) + 1))


def reasons(kernel: Any) -> tuple[Reason, ...]:
    """What is in a kernel, and in functions that it calls, of which Warp has no right adjoint."""
    found: list[Reason] = []
    texts = list(_texts(kernel.func, _DEPTH, set()))
    limit = _most_unrolled(kernel)
    for text in texts:
        found += _loops(text, limit)
    for text in texts:
        found += _in_place(text)
    for text in texts:
        found += _components(text)
    for text in texts:
        found += _without_adjoint(text)
    return tuple(dict.fromkeys(found))


def _most_unrolled(kernel: Any) -> int:
    found = kernel.options.get("max_unroll") or kernel.module.options.get("max_unroll")
    return found if isinstance(found, int) else 16


def _texts(func: Any, depth: int, seen: set[int]) -> Iterator[_Text]:
    func = inspect.unwrap(func)
    if depth < 0 or id(func) in seen:
        return
    seen.add(id(func))
    tree = _tree(func.__code__)
    if tree is None:
        return
    text = _Text(func.__code__.co_filename, tree, _names(func))
    yield text
    for node in ast.walk(tree):
        called: Any = _meaning(node.func, text.names) if isinstance(node, ast.Call) else None
        if kind_of(called) == "Function" and called.func is not None:
            yield from _texts(called.func, depth - 1, seen)


def _tree(code: CodeType) -> ast.FunctionDef | None:
    """The text of a function, as the file has it now."""
    for node in ast.walk(_parsed("".join(getlines(code.co_filename)))):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min((d.lineno for d in node.decorator_list), default=node.lineno)
            if first == code.co_firstlineno:
                return node
    return None


@lru_cache(maxsize=16)
def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module([], [])


def _names(func: Any) -> dict[str, Any]:
    out = dict(func.__globals__)
    for name, cell in zip(func.__code__.co_freevars, func.__closure__ or (), strict=False):
        try:
            out[name] = cell.cell_contents
        except ValueError:
            continue
    return out


def _meaning(node: ast.expr, names: dict[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        return getattr(_meaning(node.value, names), node.attr, None)
    return None


# ---- loops


def _loops(text: _Text, limit: int) -> Iterator[Reason]:
    """Variables that the rounds of a loop pass on to each other, where it is not unrolled."""
    for node in ast.walk(text.tree):
        if not isinstance(node, (ast.For, ast.While)) or not _is_dynamic(node, text, limit):
            continue
        carried = _carried(node)
        if carried:
            named = ", ".join(f"`{n}`" for n in carried[:3])
            yield Reason(
                "loop",
                f"the rounds of this loop pass on {named}, and how many there are is not known "
                "when Warp compiles it (or they are too many to be unrolled): its backward pass "
                "does not run the rounds again, and uses the last values for every round",
                text.span(node),
            )
        elif summed := _summed(node):
            named = ", ".join(f"`{n}`" for n in summed[:3])
            yield Reason(
                "loop",
                f"Warp's backward pass does not run this loop again: {named}, which it computes, "
                "is missing where later lines need it",
                text.span(node),
            )


def _is_dynamic(node: ast.For | ast.While, text: _Text, limit: int) -> bool:
    if isinstance(node, ast.While):
        return True
    call = node.iter
    if not isinstance(call, ast.Call) or not call.args:
        return False
    values = [_constant(a, text.names) for a in call.args]
    if any(v is None for v in values) or len(values) > 3:
        return True
    try:
        return len(range(*values)) > limit  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return True


def _constant(node: ast.expr, names: dict[str, Any]) -> int | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _constant(node.operand, names)
        return None if inner is None else -inner
    if isinstance(node, ast.Call):  # static, or a function of constants
        return 0 if getattr(node.func, "attr", getattr(node.func, "id", "")) == "static" else None
    found = _meaning(node, names)
    value = getattr(found, "value", found)
    return value if isinstance(value, int) else None


def _carried(loop: ast.For | ast.While) -> list[str]:
    """Names, and elements of arrays, that a round reads and changes other than by adding."""
    out: dict[str, None] = {}
    for node in ast.walk(loop):
        if isinstance(node, ast.AugAssign) and not _is_sum(node):
            out[ast.unparse(node.target)] = None
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                name = ast.unparse(target)
                if _reads(node.value, name) and not _counts(node, name):
                    out[name] = None
    # By way of other variables: assigned in the loop, and read in it before that.
    read: set[str] = set()
    for stmt in loop.body:
        for node in ast.walk(stmt):
            if isinstance(node, ast.Assign):
                read |= {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}
        for node in ast.walk(stmt):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                if name in read and name not in out and not _counts(node, name):
                    before = any(_reads(s, name) for s in loop.body if s.lineno < stmt.lineno)
                    if before:
                        out[name] = None
    return list(out)


def _summed(loop: ast.For | ast.While) -> list[str]:
    """Variables that a loop adds to, or sets."""
    found = [n.target for n in ast.walk(loop) if isinstance(n, ast.AugAssign)]
    found += [t for n in ast.walk(loop) if isinstance(n, ast.Assign) for t in n.targets
              if isinstance(t, ast.Name)]  # fmt: skip
    return list(dict.fromkeys(ast.unparse(t) for t in found if isinstance(t, ast.Name)))


def _is_sum(node: ast.AugAssign) -> bool:
    return isinstance(node.op, (ast.Add, ast.Sub)) and not _reads(
        node.value, ast.unparse(node.target)
    )


def _counts(node: ast.Assign, name: str) -> bool:
    """Whether it adds a number that does not depend on it: `k = k + 1`."""
    value = node.value
    return (
        isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub))
        and ast.unparse(value.left) == name and not _reads(value.right, name)
    )  # fmt: skip


def _reads(node: ast.AST, name: str) -> bool:
    return any(
        isinstance(n, ast.expr) and isinstance(getattr(n, "ctx", ast.Load()), ast.Load)
        and ast.unparse(n) == name
        for n in ast.walk(node)
    )  # fmt: skip


# ---- what is changed in place


def _in_place(text: _Text) -> Iterator[Reason]:
    for node in ast.walk(text.tree):
        if not isinstance(node, ast.AugAssign) or not isinstance(node.target, ast.Subscript):
            continue
        if isinstance(node.op, (ast.Mult, ast.Div)):
            what = "multiplies" if isinstance(node.op, ast.Mult) else "divides"
            yield Reason(
                "in place",
                f"this {what} `{ast.unparse(node.target)}` in place: the backward pass reads the "
                "new values, but the derivative needs the old values",
                text.span(node),
            )


def _components(text: _Text) -> Iterator[Reason]:
    """Components of vectors that are assigned once more."""
    arrays = {a.arg for a in text.tree.args.args}
    seen: dict[str, int] = {}
    whole: dict[str, ast.expr] = {}  # what vectors were made of
    found = [n for n in ast.walk(text.tree) if isinstance(n, (ast.Assign, ast.AugAssign))]
    for node in sorted(found, key=lambda n: (n.lineno, n.col_offset)):
        targets = node.targets if isinstance(node, ast.Assign) else (
            [node.target] if isinstance(node, ast.AugAssign) else [])  # fmt: skip
        for t in targets:
            if isinstance(t, ast.Name) and isinstance(node, ast.Assign):
                whole[t.id] = node.value
                for known in [k for k in seen if k.startswith((f"{t.id}[", f"{t.id}."))]:
                    del seen[known]
            if not isinstance(t, (ast.Subscript, ast.Attribute)):
                continue
            if not isinstance(t.value, ast.Name) or t.value.id in arrays:
                continue
            name = ast.unparse(t)
            seen[name] = seen.get(name, int(_moves(whole.get(t.value.id), t))) + 1
            if seen[name] == 2:
                yield Reason(
                    "component",
                    f"the component `{name}` is assigned more than once: the backward pass only "
                    "has its last value (unless wp.config.enable_vector_component_overwrites is "
                    "set)",
                    text.span(t),
                )


def _moves(made: ast.expr | None, part: ast.Subscript | ast.Attribute) -> bool:
    """Whether what a vector was made of gave that component something other than a constant."""
    if not isinstance(made, ast.Call):
        return made is not None and not isinstance(made, ast.Constant)
    at = _constant(part.slice, {}) if isinstance(part, ast.Subscript) else "xyzw".find(part.attr)
    given = [a for k, a in enumerate(made.args) if len(made.args) == 1 or at in (k, None, -1)]
    return any(isinstance(n, (ast.Name, ast.Subscript)) for a in given for n in ast.walk(a))


def _without_adjoint(text: _Text) -> Iterator[Reason]:
    for node in ast.walk(text.tree):
        if not isinstance(node, ast.Call):
            continue
        called: Any = _meaning(node.func, text.names)
        if kind_of(called) != "Function" or called.func is not None:
            continue
        if getattr(called, "is_differentiable", True) or _FLAT.fullmatch(called.key):
            continue
        yield Reason(
            "no adjoint", f"Warp has no adjoint of `{called.key}`: gradients end there",
            text.span(node),
        )  # fmt: skip

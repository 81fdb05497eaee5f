"""Functions that are written while the program runs, and lambdas as functions."""

from __future__ import annotations

import ast
import linecache
import os
import types
from collections.abc import Iterator, Sequence
from typing import Any

from engine.builtins.stubs import Builtin
from engine.diagnostics import Diagnostic, KernelError
from engine.diagnostics.site import call_span
from engine.frontend import UserFunc, function_text
from engine.hashing import hashed
from engine.lang.values import to_ir_type

_PLAIN = (int, float, bool, str, type(None))


def define(name: str, lines: Sequence[str], names: dict[str, Any], where: str = "") -> Any:
    """The function that lines of Python define, with a source that can be looked up.

    names: what the text may name. where: for messages, where the text comes from.
    """
    text = "\n".join(lines) + "\n"
    digest = hashed(text.encode()).hexdigest()[:16]
    file = f"<{where or name} {digest}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope = {"__name__": __name__, **names}
    exec(compile(text, file, "exec", dont_inherit=True), scope)
    return scope[name]


def identity(func: Any) -> Any:
    """What tells functions apart that mean the same: a lambda in a loop is one function.

    What it holds keeps alive what it was made from.
    """
    code = getattr(func, "__code__", None)
    if isinstance(func, (UserFunc, Builtin, type)) or code is None:
        return _Same(func)
    cells = [_content(c) for c in func.__closure__ or ()]
    scope = func.__globals__
    used = [scope[n] for n in _names_in(code) if n in scope]
    return (code, tuple(_value(v) for v in cells), tuple(_value(v) for v in used),
            tuple(_value(v) for v in func.__defaults__ or ()))  # fmt: skip


def _names_in(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield from _names_in(c)


class _Same:
    """An object as a key, by identity."""

    __slots__ = ("obj",)

    def __init__(self, obj: Any) -> None:
        self.obj = obj

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.obj is self.obj

    def __hash__(self) -> int:
        return id(self.obj)


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _value(value: Any) -> Any:
    return (type(value), repr(value)) if isinstance(value, _PLAIN) else _Same(value)


def functions_of(func: Any, count: int) -> tuple[str, Any]:
    """A name for a function, and what kernels call: see `map`.

    count: how many arguments it is called with. Raises KernelError for what kernels cannot call.
    """
    if isinstance(func, (UserFunc, Builtin)):
        name = func.name if isinstance(func, UserFunc) else func.__name__
        return _plain_name(name), func
    if isinstance(func, type):
        to_ir_type(func)
        return _plain_name(func.__name__), func
    code = getattr(func, "__code__", None)
    if code is None or not isinstance(func, types.FunctionType):
        raise _refused(f"{func!r} is not a function that kernels can call",
                       "pass a `@func`, a builtin, a Python function or a lambda")  # fmt: skip
    if code.co_name != "<lambda>":
        return _plain_name(func.__name__), UserFunc(func)
    return "lambda", UserFunc(_from_lambda(func))


def _plain_name(name: str) -> str:
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name)


def named_function(func: Any) -> UserFunc:
    """A function that kernels can call; a lambda gets a name that its text decides.

    Raises KernelError for what is not a Python function in the kernel language.
    """
    if isinstance(func, types.FunctionType) and func.__code__.co_name == "<lambda>":
        text = ast.unparse(_lambda_node(func))
        name = f"func_{hashed(text.encode()).hexdigest()[:16]}"
        return UserFunc(_from_lambda(func, name))
    called = functions_of(func, 0)[1]
    if not isinstance(called, UserFunc):
        raise _refused(f"{func!r} is not a Python function", "kernels can call it directly")
    return called


def _from_lambda(func: types.FunctionType, name: str = "lambda_") -> Any:
    """A function with a name that does what a lambda does."""
    node = _lambda_node(func)
    code = func.__code__
    scope = dict(func.__globals__)
    scope.update(zip(code.co_freevars, (_content(c) for c in func.__closure__ or ()), strict=True))
    lines = [f"def {name}({ast.unparse(node.args)}):", f"    return {ast.unparse(node.body)}"]
    where = f"lambda at {os.path.basename(code.co_filename)}:{code.co_firstlineno}"
    made = define(name, lines, scope, where)
    made.__defaults__ = func.__defaults__
    return made


def _lambda_node(func: types.FunctionType) -> ast.Lambda:
    """The lambda's syntax tree, from its file as it was when the lambda was compiled."""
    code, text = func.__code__, function_text(func)
    lines = None if text is None else text.lines
    if lines is None:
        raise _refused("the source of this lambda cannot be found", "write a `def`")
    tree = ast.parse("".join(lines))
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Lambda) and _may_be(n, code)]
    positions = getattr(code, "co_positions", None)
    if positions is not None and len(found) > 1:  # Python 3.11 knows columns
        spots = [p for p in positions() if None not in p and p[0::2] < p[1::2]]
        found = [n for n in found if all(_contains(n, p) for p in spots)]
        found = sorted(found, key=lambda n: (n.lineno, n.col_offset))[-1:]  # the innermost
    if len(found) != 1:
        raise _refused("this line has several lambdas", "write each on a separate line")
    return found[0]


def _may_be(node: ast.Lambda, code: types.CodeType) -> bool:
    names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return node.lineno == code.co_firstlineno and tuple(names) == code.co_varnames[: len(names)]


def _contains(node: ast.expr, position: tuple[int, int, int, int]) -> bool:
    line, end, col, end_col = position
    begin, stop = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
    return begin <= (line, col) and (end, end_col) <= stop


def _refused(message: str, help: str) -> KernelError:
    return KernelError(Diagnostic("E103", message, call_span(), help))

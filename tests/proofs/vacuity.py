"""Assertions that cannot fail, code that cannot run, and blocks in which a failure is lost."""

from __future__ import annotations

import ast

_BROAD = {"Exception", "BaseException"}
_CATCHING = _BROAD | {"AssertionError"}


def truth(e: ast.expr) -> bool | None:
    """What an expression is for certain, whatever the program does; None: it depends."""
    match e:
        case ast.Constant(value):
            return bool(value)
        case ast.Tuple(parts) | ast.List(parts) | ast.Set(parts):
            return any(not isinstance(p, ast.Starred) for p in parts) or (None if parts else False)
        case ast.Dict(keys):
            return bool(keys)
        case ast.JoinedStr(parts):
            return any(isinstance(p, ast.Constant) and p.value for p in parts) or None
        case ast.Lambda():
            return True
        case ast.UnaryOp(ast.Not(), of):
            known = truth(of)
            return None if known is None else not known
        case ast.BoolOp(op, parts):
            each, decides = [truth(p) for p in parts], isinstance(op, ast.Or)
            return decides if decides in each else (None if None in each else not decides)
        case ast.Compare(left, [ast.Eq() | ast.Is() | ast.LtE() | ast.GtE()], [right]):
            same = ast.dump(left) == ast.dump(right)
            return (
                True if same and not any(isinstance(n, ast.Call) for n in ast.walk(left)) else None
            )
    return None


def vacuous(node: ast.Assert) -> bool:
    """Whether an assertion holds whatever the program does."""
    match node.test:
        case ast.Compare(ast.Call(ast.Name("len")), [ast.GtE()], [ast.Constant(0)]):
            return True
        case ast.Call(ast.Name("isinstance"), [_, ast.Name("object")]):
            return True
    return truth(node.test) is True


def dead(node: ast.AST) -> list[ast.AST]:
    """What is inside of a statement and never runs."""
    match node:
        case ast.If(test, body, orelse):
            known = truth(test)
            return [] if known is None else list(orelse if known else body)
        case ast.While(test, body) if truth(test) is False:
            return list(body)
        case ast.For(iter=ast.Tuple([]) | ast.List([]), body=body):
            return list(body)
    return []


def names(of: ast.expr | None) -> set[str]:
    """The names of exceptions in a handler or a call."""
    if of is None:
        return {"BaseException"}
    parts = of.elts if isinstance(of, ast.Tuple) else [of]
    return {p.attr if isinstance(p, ast.Attribute) else getattr(p, "id", "") for p in parts}


def broad(call: ast.Call) -> bool:
    """Whether `raises(...)` is content with any exception, and with any text."""
    given = [k.arg for k in call.keywords]
    return (
        bool(call.args) and bool(names(call.args[0]) & _BROAD) and not {"match", "check"} & {*given}
    )


def swallowing(node: ast.AST) -> bool:
    """Whether a failed assertion in the block of a `try` or a `with` is lost."""
    match node:
        case ast.Try(handlers=handlers):
            return any(
                names(h.type) & _CATCHING
                and not any(isinstance(n, (ast.Raise, ast.Assert)) for n in ast.walk(h))
                and h.name is None
                for h in handlers
            )
        case ast.With(items):
            return any(
                isinstance(i.context_expr, ast.Call)
                and getattr(i.context_expr.func, "attr", getattr(i.context_expr.func, "id", ""))
                in ("raises", "suppress")
                and any(names(a) & _CATCHING for a in i.context_expr.args)
                for i in items
            )
    return False

"""Unsupported Python syntax, with what to write instead."""

from __future__ import annotations

import ast

# Node types that pass the fence as such (some with conditions, see `fence`).
ALLOWED: tuple[type[ast.AST], ...] = (
    ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return, ast.If, ast.For, ast.While,
    ast.Break, ast.Continue, ast.Pass, ast.Assert,
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call, ast.Name, ast.Attribute,
    ast.Subscript, ast.Slice, ast.Constant, ast.Tuple, ast.NamedExpr,
    ast.Load, ast.Store,
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult,
    ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift,
    ast.UAdd, ast.USub, ast.Not, ast.Invert, ast.And, ast.Or,
    ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn,
    ast.keyword,
)  # fmt: skip

# Node type name -> (what it is, what to write instead).
REJECTED: dict[str, tuple[str, str]] = {
    "AsyncFor": ("`async for`", "write a plain `for` over `range(...)`"),
    "AsyncFunctionDef": ("`async def`", "move the function out and decorate it with `@func`"),
    "AsyncWith": ("`async with`", "kernels have no context managers: remove it"),
    "Await": ("`await`", "kernels cannot wait: remove it"),
    "ClassDef": ("a class inside a kernel", "define it outside; a kernel uses scalars, vectors, "
                 "matrices and arrays"),
    "Delete": ("`del`", "remove it: variables of a kernel need no deletion"),
    "Dict": ("a dictionary", "pass arrays as kernel parameters, or use separate variables"),
    "DictComp": ("a dictionary comprehension", "write a `for` loop that stores into an array"),
    "FunctionDef": ("a function inside a kernel", "define it outside the kernel with `@func`"),
    "GeneratorExp": ("a generator expression", "write a `for` loop that accumulates into a "
                     "variable"),
    "Global": ("`global`", "write results into an array parameter"),
    "Import": ("`import` inside a kernel", "import the module at the top of the file"),
    "ImportFrom": ("`import` inside a kernel", "import the name at the top of the file"),
    "JoinedStr": ("an f-string", "remove it: kernels have no strings"),
    "Lambda": ("`lambda`", "define a function outside the kernel with `@func` and call it"),
    "List": ("a list", "use a vector such as `vec3(a, b, c)`, separate variables, or an array "
             "parameter"),
    "ListComp": ("a list comprehension", "write a `for` loop that stores into an array"),
    "Match": ("`match`", "write `if` / `elif` / `else`"),
    "Nonlocal": ("`nonlocal`", "return the value, or write it into an array parameter"),
    "Raise": ("`raise`", "write an error flag into an array parameter and test it on the host"),
    "Set": ("a set", "use separate variables or an array parameter"),
    "SetComp": ("a set comprehension", "write a `for` loop that stores into an array"),
    "Starred": ("`*` unpacking", "write the values one by one"),
    "TemplateStr": ("a template string", "remove it: kernels have no strings"),
    "Try": ("`try`", "remove it: nothing in a kernel raises an exception"),
    "TryStar": ("`try`", "remove it: nothing in a kernel raises an exception"),
    "TypeAlias": ("`type` inside a kernel", "define the alias outside the kernel"),
    "With": ("`with`", "kernels have no context managers: remove it, or put it around the launch"),
    "Yield": ("`yield`", "write the values into an array parameter"),
    "YieldFrom": ("`yield from`", "write the values into an array parameter"),
}  # fmt: skip

# Comparison operators that are not of the language.
COMPARISONS: dict[str, tuple[str, str]] = {
    "Is": ("`is`", "compare values with `==`"),
    "IsNot": ("`is not`", "compare values with `!=`"),
}

# Constants that are not numbers.
CONSTANTS: dict[str, tuple[str, str]] = {
    "str": ("a string", "remove it, or use an integer in its place"),
    "bytes": ("a bytes literal", "remove it, or use an array of `uint8`"),
    "complex": ("a complex number", "use a `vec2` for the real and the imaginary part"),
    "NoneType": ("`None`", "use a number in its place, or a separate flag"),
    "ellipsis": ("`...`", "write the statements, or `pass`"),
}

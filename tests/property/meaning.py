"""Runs random source text in Python itself, as an oracle independent of the compiler.

The text runs as Python on NumPy arrays. Python's own semantics differ in one point, that
names refer to objects: so values are copied wherever the text assigns, passes or returns
them, and a place such as `s[i].p.v.x` is read, changed and written back.
"""

from __future__ import annotations

import ast
import copy
import operator
from typing import Any

import numpy as np

import engine as wp
from tests.property.integers import INTEGERS

RECORDS = {"Pair": ("g", "v"), "Node": ("p", "q", "m", "k", "on"), "Net": ("w", "t", "c", "p")}
_OPS = {"Add": operator.add, "Sub": operator.sub, "Mult": operator.mul}


class Record:
    """A struct's fields."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.__dict__.update(fields)


class Memory:
    """Elements over a NumPy array, which slices share. make: the type of an element."""

    def __init__(self, data: np.ndarray, ndim: int, make: Any) -> None:
        self.data, self.ndim, self.make = data, ndim, make
        self.shape = data.shape[:ndim]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        left = self.ndim - sum(not isinstance(p, slice) for p in parts)
        found = self.data[tuple(parts)]
        return Memory(found, left, self.make) if left else decoded(found, self.make)

    def __setitem__(self, index: Any, value: Any) -> None:
        parts = index if isinstance(index, tuple) else (index,)
        if self.data.dtype.names:
            put(self.data[tuple(parts)], value)
        else:
            self.data[tuple(parts)] = value


class Indexed(Memory):
    """The same behind a table of indices."""

    def __init__(self, data: np.ndarray, table: np.ndarray) -> None:
        super().__init__(data, 1, np.float64)
        self.table, self.shape = table, table.shape

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Indexed(self.data, self.table[index])
        return super().__getitem__(self.table[index])

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(self.table[index], value)


def decoded(found: Any, make: Any) -> Any:
    """A value of its own of what an array holds."""
    if isinstance(make, dict):
        return Record({name: decoded(found[name], m) for name, m in make.items()})
    return (
        make(found) if isinstance(make, type) and issubclass(make, np.generic) else make._of(found)
    )


def put(cell: Any, value: Record) -> None:
    """Writes a struct into a record."""
    for name in cell.dtype.names:
        part = getattr(value, name)
        if isinstance(part, Record):
            put(cell[name], part)
        else:
            cell[name] = part


def copied(value: Any) -> Any:
    """What an assignment takes: values of their own, and the same arrays."""
    if isinstance(value, tuple):
        return tuple(map(copied, value))
    if isinstance(value, Record):
        return Record({k: copied(v) for k, v in vars(value).items()})
    return value if isinstance(value, (Memory, type)) or callable(value) else copy.copy(value)


def get(root: Any, path: list[Any]) -> Any:
    for kind, key in path:
        root = getattr(root, key) if kind else root[key]
    return root


def place(root: Any, path: list[Any], value: Any) -> None:
    """Stores into a place, level by level from the inside."""
    (kind, key), *rest = path
    if rest:
        inner = getattr(root, key) if kind else root[key]
        place(inner, rest, value)
        value = inner
    if kind:
        setattr(root, key, value)
    elif not isinstance(value, Memory):
        root[key] = value


def update(root: Any, path: list[Any], op: str, value: Any) -> None:
    place(root, path, _OPS[op](get(root, path), value))


class Rewriter(ast.NodeTransformer):
    """Turns assignments into copies, and places into calls of `place`."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.decorator_list, node.returns = [], None
        for a in node.args.args:
            a.annotation = None
        self.generic_visit(node)
        names = [a.arg for a in node.args.args]
        node.body[:0] = [ast.parse(f"{x} = _copied({x})").body[0] for x in names]
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        self.generic_visit(node)
        value = _call("_copied", node.value)
        simple = all(isinstance(t, ast.Name) or _names(t) for t in node.targets)
        if simple and len(node.targets) == 1:
            return ast.Assign(node.targets, value)
        out: list[ast.stmt] = [ast.Assign([ast.Name("_value", ast.Store())], value)]
        for target in node.targets:
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            for k, part in enumerate(parts):
                got: ast.expr = ast.Name("_value", ast.Load())
                if isinstance(target, ast.Tuple):
                    got = ast.Subscript(got, ast.Constant(k), ast.Load())
                got = _call("_copied", got)
                if isinstance(part, ast.Name):
                    out.append(ast.Assign([ast.Name(part.id, ast.Store())], got))
                else:
                    out.append(ast.Expr(_call("_place", *_path(part), got)))
        return out

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        assert node.value is not None
        return self.visit_Assign(ast.Assign([node.target], node.value))

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self.generic_visit(node)
        if isinstance(node.target, ast.Name):
            left = ast.Name(node.target.id, ast.Load())
            return ast.Assign([node.target], ast.BinOp(left, node.op, node.value))
        op = ast.Constant(type(node.op).__name__)
        return ast.Expr(_call("_update", *_path(node.target), op, node.value))

    def visit_Return(self, node: ast.Return) -> Any:
        self.generic_visit(node)
        return ast.Return(_call("_copied", node.value)) if node.value else node


def _key(node: ast.expr) -> ast.expr:
    if not isinstance(node, ast.Slice):
        return node
    return _call("slice", *(x or ast.Constant(None) for x in (node.lower, node.upper, node.step)))


def _names(t: ast.expr) -> bool:
    return isinstance(t, ast.Tuple) and all(isinstance(x, ast.Name) for x in t.elts)


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


def _path(node: ast.expr) -> tuple[ast.expr, ast.expr]:
    """The root of a place and its steps as a list of (is a field, key)."""
    steps: list[ast.expr] = []
    while not isinstance(node, ast.Name):
        assert isinstance(node, (ast.Attribute, ast.Subscript))
        field = isinstance(node, ast.Attribute)
        key = ast.Constant(node.attr) if isinstance(node, ast.Attribute) else _key(node.slice)
        steps.insert(0, ast.Tuple([ast.Constant(field), key], ast.Load()))
        node = node.value
    return ast.Name(node.id, ast.Load()), ast.List(steps, ast.Load())


class Host:
    """`wp` as the text sees it: builtins on the host, memory and threads by Python."""

    def __init__(self) -> None:
        self.thread = 0
        self.types, self.struct = wp.types, wp.struct
        self.array, self.array2d, self.float64 = wp.array, wp.array2d, wp.float64
        for t in INTEGERS:
            setattr(self, t.name, int)  # what the text makes of them fits

    def tid(self) -> int:
        return self.thread

    def zeros(self, shape: int, dtype: Any) -> Memory:
        return Memory(np.zeros(shape), 1, np.float64)

    def where(self, cond: Any, x: Any, y: Any) -> Any:
        return x if cond else y

    def __getattr__(self, name: str) -> Any:
        found = getattr(wp, name)
        if name.startswith("atomic_"):
            return lambda *a: self._atomic(name[7:], *a)

        def call(*args: Any, **named: Any) -> Any:
            # Python's floats would count as single precision.
            got = found(*(np.float64(a) if type(a) is float else a for a in args), **named)
            return _doubled(got)

        return call

    def _atomic(self, kind: str, array: Memory, *rest: Any) -> Any:
        *at, value = rest
        index = tuple(at)
        old = array[index]
        op = {"add": operator.add, "sub": operator.sub, "min": wp.min, "max": wp.max}[kind]
        array[index] = op(old, value)
        return old


def _doubled(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(map(_doubled, x))
    return np.float64(x) if type(x) is float else x


def make_record(name: str, zero: dict[str, Any]) -> Any:
    """What constructs a struct in the text."""

    def make(*args: Any, **named: Any) -> Record:
        fields = {f: z() for f, z in zero.items()}
        fields.update(zip(RECORDS[name], map(copied, args), strict=False))
        fields.update({k: copied(v) for k, v in named.items()})
        return Record(fields)

    return make


class Meaning:
    """A module of text as Python: `run` launches a kernel of it on copies of arguments."""

    def __init__(self, text: str, types: Any) -> None:
        """types: the module as the compiler sees it, for its types alone."""
        self.types = types
        tree = ast.parse(text)
        kept = [s for s in tree.body if isinstance(s, ast.FunctionDef)]
        tree = Rewriter().visit(ast.Module(kept, []))
        ast.fix_missing_locations(tree)
        self.host = Host()
        t = types
        self.makes: dict[str, Any] = {"g": np.float64, "v": t.V3, "q": t.Q, "m": t.M22,
                                      "k": np.int32, "on": np.bool_}  # fmt: skip
        pair = {f: self.makes[f] for f in RECORDS["Pair"]}
        self.makes["p"] = pair
        node = {f: self.makes[f] for f in RECORDS["Node"]}
        self.elements = {"Pair": pair, "Node": node}
        make_pair = make_record("Pair", pair)
        self.names: dict[str, Any] = {
            "wp": self.host, "F": np.float64, "V2": t.V2, "V3": t.V3, "M22": t.M22, "M33": t.M33,
            "Q": t.Q, "X": t.X, "Pair": make_pair, "int": int,
            "Node": make_record("Node", {**node, "p": make_pair}),
            "Net": make_record("Net", {**dict.fromkeys("wtc", lambda: None), "p": make_pair}),
            "_copied": copied, "_place": place, "_update": update,
        }  # fmt: skip
        exec(compile(tree, "<meaning>", "exec"), self.names)

    def memory(self, a: Any) -> Memory:
        """An array of the engine as memory; changes go to the array itself."""
        kind = a.dtype
        name = getattr(kind, "__name__", "")
        if name in self.elements:
            return Memory(a.numpy(), a.ndim, self.elements[name])
        return Memory(a.numpy(), a.ndim, np.float64 if kind is wp.float64 else kind)

    def run(self, name: str, dim: int, args: list[Any]) -> None:
        """Runs the threads one after the other. The arguments are changed."""
        a, m, u, s, net, ix, n = args
        struct = Record({"w": self.memory(net.w), "t": self.memory(net.t),
                         "c": self.memory(net.c),
                         "p": Record({"g": np.float64(net.p.g), "v": +net.p.v})})  # fmt: skip
        indexed = Indexed(ix.data.numpy(), ix.tables[0].numpy())
        with np.errstate(all="ignore"):
            for k in range(dim):
                self.host.thread = k
                arrays = [self.memory(x) for x in (a, m, u, s)]
                self.names[name](*arrays, copied(struct), indexed, n)

"""Tells whether a test can fail: it must reach an assertion that can.

A test reaches what stands in its body, and the functions of tests that the body names: nested
ones, those of its module and of modules that it imports, methods of objects whose class is known,
what fixtures and `parametrize` give. Names are resolved as Python resolves them. A function outside
of `tests` asserts something only if `OUTSIDE` lists it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.proofs.names import (
    Class,
    Definition,
    Function,
    Instance,
    Module,
    Scope,
    Thing,
    bound,
    decorated,
    fixture_name,
    flat,
    last_name,
    yields,
)
from tests.proofs.vacuity import broad, dead, swallowing, vacuous

# Functions of other packages that raise where something does not hold, by their full names.
OUTSIDE = re.compile(
    r"numpy\.testing\.assert_.*|pytest\.(raises|warns|fail|deprecated_call)"
    r"|torch\.testing\.assert_close|torch\.autograd\.(gradcheck\.)?grad(grad)?check"
    r"|torch\.library\.opcheck|jax\.test_util\.check_(grads|vjp|jvp)"
    r"|subprocess\.check_(call|output)|jsonschema\.validate"
    r"|hypothesis\.stateful\.run_state_machine_as_test|adtool\.gradcheck"
)
# Decorators whose functions are kernels: an `assert` in one is part of a compiled program.
KERNELS = {"kernel", "func", "func_grad", "func_native", "func_replay", "overload"}
# Fixtures of the plugin that give functions that assert.
GIVEN = {"gradcheck": "adtool.gradcheck"}
REPLACING = {"setattr", "setitem"}  # what they put in place need not be called


class Proofs:
    """Answers for the files of a folder. sources: texts that stand for files, by their paths."""

    def __init__(self, root: Path, sources: dict[Path, str] | None = None) -> None:
        self.root = root
        self._sources = sources or {}
        self._modules: dict[Path, Module | None] = {}
        self._known: dict[tuple[ast.AST, bool], bool] = {}
        self.seen = 0  # tests that were looked at

    def silent(self, path: Path) -> list[str]:
        """The tests of a file that reach no assertion that can fail."""
        module = self.module(path)
        assert module is not None
        self.seen += len(module.tests)
        return [f.node.name for f in module.tests if not self.proves(f)]  # type: ignore[union-attr]

    def module(self, path: Path) -> Module | None:
        """A file, read once; None if it is not there."""
        if path not in self._modules:
            source = self._sources.get(path)
            there = source is not None or path.is_file()
            self._modules[path] = Module(path, source) if there else None
        return self._modules[path]

    def named(self, name: str) -> Module | None:
        """A module of tests by its full name."""
        if name.split(".")[0] != "tests":
            return None
        path = self.root.joinpath(*name.split("."))
        return self.module(path.with_suffix(".py")) or self.module(path / "__init__.py")

    # ------------------------------------------------------------ what expressions are

    def values(self, e: ast.AST, scope: Scope, depth: int = 8) -> list[Thing]:
        """The functions, classes, objects and names outside that an expression can be."""
        if depth == 0:
            return []
        match e:
            case ast.Name(name):
                return self.name(name, scope, depth)
            case ast.Attribute(of, name):
                return [t for v in self.values(of, scope, depth) for t in self.attribute(v, name)]
            case ast.Call(ast.Attribute(_, "importorskip"), [ast.Constant(str(package)), *_]):
                return [package]
            case ast.Call(func):
                return [t for f in self.values(func, scope, depth) for t in self.given(f, depth)]
            case ast.Lambda():
                return [Function(e, scope)]
            case ast.IfExp(_, body, orelse):
                parts = [body, orelse]
            case ast.Subscript(of) | ast.Starred(of) | ast.NamedExpr(_, of) | ast.Await(of):
                parts = [of]
            case ast.Dict(_, parts) | ast.List(parts) | ast.Tuple(parts) | ast.Set(parts):
                pass
            case ast.BoolOp(_, parts):
                pass
            case ast.ListComp(element) | ast.GeneratorExp(element) | ast.DictComp(value=element):
                parts = [element]
            case _:
                return []
        return [t for p in parts for t in self.values(p, scope, depth - 1)]

    def name(self, name: str, scope: Scope, depth: int) -> list[Thing]:
        at, binding = scope.find(name)
        if name in at.values:
            return at.values[name]
        if isinstance(binding, Definition):
            return [] if decorated(binding, KERNELS) else [Function(binding, at)]
        if isinstance(binding, ast.ClassDef):
            return [Class(binding, at)]
        if isinstance(binding, str):
            return self.imported(binding, depth)
        return [] if binding is None else self.values(binding, at, depth - 1)

    def imported(self, full: str, depth: int = 8) -> list[Thing]:
        """What a full name stands for: something of tests, or itself."""
        if self.named(full) is not None:
            return [full]
        of, _, name = full.rpartition(".")
        module = self.named(of)
        return [full] if module is None else self.name(name, module.scope, depth - 1)

    def attribute(self, of: Thing, name: str) -> list[Thing]:
        if isinstance(of, str):
            return self.imported(f"{of}.{name}")
        cls = of.of if isinstance(of, Instance) else of
        return self.member(cls, name) if isinstance(cls, Class) else []

    def member(self, cls: Class, name: str) -> list[Thing]:
        """A method, of the class or of one that it is made from, or another class attribute."""
        binding = bound(cls.node).get(name)
        if isinstance(binding, Definition):
            return [Function(binding, cls.scope, cls)]
        if isinstance(binding, ast.expr):
            return self.values(binding, cls.scope)
        for field in flat(cls.node.body):  # a field by its annotation
            if isinstance(field, ast.AnnAssign) and getattr(field.target, "id", "") == name:
                return self.annotated(field.annotation, cls.scope)
        init = bound(cls.node).get("__init__")
        for node in flat(init.body) if isinstance(init, Definition) else ():
            if isinstance(node, ast.Assign):
                if any(isinstance(t, ast.Attribute) and t.attr == name for t in node.targets):
                    return self.values(node.value, self.inside(Function(init, cls.scope, cls)), 4)
        bases = [b for e in cls.node.bases for b in self.values(e, cls.scope)]
        return [t for b in bases if isinstance(b, Class) for t in self.member(b, name)]

    def annotated(self, annotation: ast.expr | None, scope: Scope) -> list[Thing]:
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            annotation = ast.parse(annotation.value, mode="eval").body
        if isinstance(annotation, ast.Subscript):  # Iterator[Project], list[Project]
            annotation = annotation.slice
        found = self.values(annotation, scope) if annotation is not None else []
        return [Instance(c) for c in found if isinstance(c, Class)]

    def given(self, f: Thing, depth: int) -> list[Thing]:
        """What a call gives."""
        if isinstance(f, Class):
            return [Instance(f)]
        if not isinstance(f, Function):
            return []
        if isinstance(f.node, ast.Lambda):
            return self.values(f.node.body, self.inside(f), depth - 1)
        if known := self.annotated(f.node.returns, f.scope):
            return known
        inside = self.inside(f)
        results = [
            n.value for n in flat(f.node.body) if isinstance(n, (ast.Return, ast.Yield)) and n.value
        ]
        return [t for r in results for t in self.values(r, inside, depth - 3 if depth > 3 else 0)]

    def inside(self, f: Function) -> Scope:
        """The scope of a function's body."""
        scope = Scope(f.scope.module, outer=f.scope)
        if isinstance(f.node, ast.Lambda):
            scope.values = {a.arg: [] for a in arguments(f.node)}
            return scope
        scope.names = bound(f.node)
        for number, a in enumerate(arguments(f.node)):
            if f.of is not None and number == 0:
                scope.values[a.arg] = [Instance(f.of)]
            else:
                scope.values[a.arg] = self.annotated(a.annotation, f.scope)
        return scope

    # ------------------------------------------------------------ what tests are given

    def of_test(self, f: Function) -> tuple[Scope, list[Function]]:
        """The scope of a test or a fixture, whose arguments are known, and its fixtures."""
        assert isinstance(f.node, Definition)
        scope, fixtures = self.inside(f), []
        tables = [
            table
            for d in f.node.decorator_list
            if isinstance(d, ast.Call) and last_name(d) == "parametrize"
            if (table := parameters(d))
        ]
        for a in arguments(f.node):
            for table in tables:
                if a.arg in table:
                    scope.values[a.arg] = [t for e in table[a.arg] for t in self.values(e, f.scope)]
            fixture = self.fixture(a.arg, f)
            if fixture is None and a.arg in GIVEN:
                scope.values[a.arg] = [GIVEN[a.arg]]
            if fixture is not None:
                fixtures.append(fixture)
                if not scope.values.get(a.arg):
                    scope.values[a.arg] = self.results(fixture)
        for d in f.node.decorator_list:
            if isinstance(d, ast.Call) and last_name(d) == "usefixtures":
                named = [self.fixture(str(getattr(n, "value", "")), f) for n in d.args]
                fixtures += [n for n in named if n is not None]
        return scope, fixtures

    def results(self, fixture: Function) -> list[Thing]:
        assert isinstance(fixture.node, Definition)
        if known := self.annotated(fixture.node.returns, fixture.scope):
            return known
        scope, _ = self.of_test(fixture)
        return [
            t
            for n in flat(fixture.node.body)
            if isinstance(n, (ast.Return, ast.Yield)) and n.value
            for t in self.values(n.value, scope)
        ]

    def fixture(self, name: str, f: Function) -> Function | None:
        """The fixture of a name: of the class, the file, or the nearest conftest."""
        path = f.scope.module.path
        folders = [p for p in path.parents if p.is_relative_to(self.root / "tests")]
        modules = [f.scope.module, *(self.module(p / "conftest.py") for p in folders)]
        for module in modules:
            if module is None:
                continue
            binding = module.fixtures.get(name, module.scope.names.get(name))
            found: list[Thing] = []
            if isinstance(binding, str):
                found = self.imported(binding)
            elif isinstance(binding, Definition):
                found = [Function(binding, module.scope)]
            for one in found:
                if isinstance(one, Function) and one.node is not f.node and fixture_name(one.node):
                    return one
        return None

    # ------------------------------------------------------------ what is reached

    def proves(self, f: Function, entered: bool = True) -> bool:
        """Whether a function reaches an assertion. entered: what it yields is asked for."""
        key = (f.node, entered)
        if key not in self._known:
            self._known[key] = (
                False  # while it is looked at: what calls itself proves nothing by that
            )
            self._known[key] = self._proves(f, entered)
        return self._known[key]

    def _proves(self, f: Function, entered: bool) -> bool:
        if isinstance(f.node, ast.Lambda):
            return self.reaches([f.node.body], self.inside(f))
        if decorated(f.node, KERNELS) or (yields(f.node) and not entered):
            return False
        if self.reaches(f.node.body, None):
            return True
        is_test = f.node.name.startswith("test") or fixture_name(f.node)
        scope, fixtures = self.of_test(f) if is_test else (self.inside(f), [])
        return self.reaches(f.node.body, scope) or any(self.at_the_end(x) for x in fixtures)

    def at_the_end(self, fixture: Function) -> bool:
        """Whether a fixture asserts something when the test is over."""
        assert isinstance(fixture.node, Definition)
        lines = [n.lineno for n in flat(fixture.node.body) if isinstance(n, ast.Yield)]
        scope, _ = self.of_test(fixture)
        late = [
            n
            for n in flat(fixture.node.body)
            if isinstance(n, ast.stmt) and lines and n.lineno > lines[0]
        ]
        return self.reaches(late, scope)

    def reaches(self, body: Sequence[ast.AST], scope: Scope | None) -> bool:
        """Whether statements or expressions do, one after the other, up to one that leaves.

        Without a scope no name is looked up, which is quick: most tests have an `assert` in them.
        """
        for node in body:
            if self.node(node, scope):
                return True
            if isinstance(node, (ast.Return, ast.Raise, ast.Continue, ast.Break)):
                return False
        return False

    def node(self, node: ast.AST, scope: Scope | None) -> bool:
        if scope is None and isinstance(node, ast.expr):
            return False
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return any(self.node(d, scope) for d in node.decorator_list)
            case ast.Assert():
                return not vacuous(node) or self.node(node.test, scope)
            case ast.Raise(ast.Call(ast.Name("AssertionError")) | ast.Name("AssertionError")):
                return True
        if scope is not None:
            found = self.named_in(node, scope)
            if found is not None:
                return found
        never = {id(n) for n in dead(node)}
        if swallowing(node):
            never |= {id(n) for n in node.body}  # type: ignore[attr-defined]
        for _, part in ast.iter_fields(node):
            if isinstance(part, list) and part and isinstance(part[0], ast.stmt):
                if self.reaches([n for n in part if id(n) not in never], scope):
                    return True
            elif any(
                self.node(n, scope)
                for n in (part if isinstance(part, list) else [part])
                if isinstance(n, ast.AST) and id(n) not in never
            ):
                return True
        return False

    def named_in(self, node: ast.AST, scope: Scope) -> bool | None:
        """Whether what a node names does; None where its parts have to be looked at."""
        match node:
            case ast.Call():
                return self.call(node, scope)
            case ast.Expr(ast.Call() as call):
                return self.call(call, scope, entered=False)
            case ast.Lambda():
                return self.proves(Function(node, scope))
            case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()):
                return self.all_prove(self.values(node, scope), True) or None
            case ast.With(items) | ast.AsyncWith(items):
                held = [v for i in items for v in self.values(i.context_expr, scope)]
                ends = [
                    end
                    for v in held
                    if isinstance(v, Instance)
                    for name in ("__enter__", "__exit__")
                    for end in self.member(v.of, name)
                ]
                return any(isinstance(e, Function) and self.proves(e) for e in ends) or None
        return None

    def call(self, call: ast.Call, scope: Scope, entered: bool = True) -> bool:
        found = self.values(call.func, scope)
        for f in found:
            if isinstance(f, str) and f == "subprocess.run":
                if any(
                    k.arg == "check" and getattr(k.value, "value", 0) is True for k in call.keywords
                ):
                    return True
            if (
                isinstance(f, str)
                and OUTSIDE.fullmatch(f)
                and not (f == "pytest.raises" and broad(call))
            ):
                return True
        if self.all_prove(found, entered):
            return True
        of = call.func.value if isinstance(call.func, ast.Attribute) else None
        if of is not None and self.node(of, scope):
            return True
        if last_name(call.func) in REPLACING:
            return False
        parts = [*call.args, *(k.value for k in call.keywords)]
        if not isinstance(call.func, (ast.Name, ast.Attribute)):
            parts.append(call.func)
        return any(self.node(p, scope) for p in parts)

    def all_prove(self, found: list[Thing], entered: bool) -> bool:
        """Whether whichever of these is called, an assertion is reached."""
        functions: list[list[Function]] = []
        for f in found:
            if isinstance(f, Function):
                functions.append([f])
            elif isinstance(f, Class):
                made = [*self.member(f, "__init__"), *self.member(f, "__post_init__")]
                functions.append([m for m in made if isinstance(m, Function)])
            elif isinstance(f, Instance):
                called = self.member(f.of, "__call__")
                functions.append([m for m in called if isinstance(m, Function)])
        return bool(functions) and all(any(self.proves(f, entered) for f in fs) for fs in functions)


def arguments(of: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Iterator[ast.arg]:
    """All parameters of a function."""
    yield from [*of.args.posonlyargs, *of.args.args, *of.args.kwonlyargs]


def parameters(call: ast.Call) -> dict[str, list[ast.expr]]:
    """What `parametrize` gives each of its names, where it is written out."""
    if len(call.args) < 2:
        return {}
    names, rows = call.args[0], call.args[1]
    if isinstance(names, ast.Constant):
        keys = [n.strip() for n in str(names.value).split(",")]
    else:
        keys = [str(getattr(n, "value", "")) for n in getattr(names, "elts", ())]
    if len(keys) == 1:
        return {keys[0]: [rows]}
    table: dict[str, list[ast.expr]] = {k: [] for k in keys}
    for row in getattr(rows, "elts", ()):
        cells = row.args if isinstance(row, ast.Call) else getattr(row, "elts", ())
        for key, cell in zip(keys, cells, strict=False):
            table[key].append(cell)
    return table

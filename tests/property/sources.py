"""Random well-typed kernels as source text: what programs below the frontend cannot have.

Structs (nested, with arrays inside, as arguments, locals, results and elements), views
and slices, local and indexed arrays, functions with several results and with structs,
generic functions, components picked at run time, updates in place, and every builtin
that has a derivative. A module is text, so that every stage reads it as a user's file.

Values that are read stay bounded, so that differences are accurate.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.property.calls import Call, calls, spelled

SIZE = 4  # elements of most arrays; indices are taken modulo this

PRELUDE = """from typing import Any

import engine as wp

F = wp.{scalar}
V2 = wp.types.vector(2, F)
V3 = wp.types.vector(3, F)
M22 = wp.types.matrix((2, 2), F)
M33 = wp.types.matrix((3, 3), F)
Q = wp.types.quaternion(F)
X = wp.types.transformation(F)


@wp.struct
class Pair:
    g: F
    v: V3


@wp.struct
class Node:
    p: Pair
    q: Q
    m: M22
    k: int
    on: bool


@wp.struct
class Net:
    w: wp.array(dtype=F)
    t: wp.array2d(dtype=F)
    c: wp.array(dtype=Pair)
    p: Pair


@wp.func
def tame(v: Any):
    return v / wp.sqrt(wp.dot(v, v) + v.dtype(1.0))


@wp.func
def tame_matrix(m: Any):
    return m / wp.sqrt(wp.ddot(m, m) + m.dtype(1.0))


@wp.func
def own(x: F, y: F):
    return x * x * y, y * y


@wp.func_grad(own)
def adj_own(x: F, y: F, adj_a: F, adj_b: F):
    wp.adjoint[x] += F(2.0) * x * y * adj_a
    wp.adjoint[y] += x * x * adj_a + F(2.0) * y * adj_b


@wp.func
def line(x: wp.array2d(dtype=F), k: int) -> wp.array(dtype=F):
    return x[k]


@wp.func
def either(x: wp.array(dtype=F), y: wp.array(dtype=F), k: int):
    if k % 2 == 0:
        return x
    for j in range(k):
        if j > 1:
            return y[1:]
    return y


@wp.func
def moved(n: Net, x: wp.array(dtype=F)):
    n.w = x
    n.p.g *= F(0.5)
    return n


@wp.func
def tame_transform(t: X):
    return X(tame(wp.transform_get_translation(t)), tame(wp.transform_get_rotation(t)))
"""

PARAMETERS = (
    "a: wp.array(dtype=F), m: wp.array2d(dtype=F), u: wp.array(dtype=V3), s: wp.array(dtype=Node), "
    "net: Net, ix: wp.indexedarray(dtype=F), n: int"
)
# What a variable of a type is read as, where it may be large.
TAME = {"F": "wp.sin({})", "V2": "tame({})", "V3": "tame({})", "Q": "tame({})",
        "M22": "tame_matrix({})", "M33": "tame_matrix({})", "X": "tame_transform({})"}  # fmt: skip
COUNTS = {"V2": 2, "V3": 3, "Q": 4, "M22": 4, "M33": 9, "X": 7}
LOCALS = ("F", "F", "F", "V3", "V3", "M22", "Q", "X", "V2", "M33", "Pair", "Node")
# Functions take these, by position.
TAKEN = ("F", "V3", "Pair", "Node", "I", "array", "Net", "local", "pairs", "vectors", "grid")


class Scope:
    """What can be named at a place: variables by type, arrays of numbers by length."""

    def __init__(self, outer: Scope | None = None) -> None:
        self.names: dict[str, list[str]] = {}
        self.arrays: list[str] = []
        self.pairs: list[str] = []  # arrays of Pair
        self.vectors: list[str] = []  # arrays of V3
        self.grids: list[str] = []
        self.locals: list[str] = []
        self.wild: set[str] = set()
        if outer is not None:
            self.names = {t: list(v) for t, v in outer.names.items()}
            self.arrays, self.pairs = list(outer.arrays), list(outer.pairs)
            self.grids, self.locals = list(outer.grids), list(outer.locals)
            self.vectors = list(outer.vectors)
            self.wild = set(outer.wild)

    def of(self, t: str) -> list[str]:
        return self.names.get(t, [])

    def add(self, t: str, name: str, wild: bool = False) -> None:
        self.names.setdefault(t, []).append(name)
        if wild:
            self.wild.add(name)


class Function:
    """A function of the module: its name, the types it takes and what it returns."""

    def __init__(self, name: str, takes: list[str], gives: list[str]) -> None:
        self.name, self.takes, self.gives = name, takes, gives


class Expressions:
    """Writes expressions of a type."""

    def __init__(self, r: random.Random, functions: list[Function], thread: str) -> None:
        self.r = r
        self.functions = functions
        self.scope = Scope()
        self.thread = thread
        self.count = 0
        # For what came later: the rest of a program is as it was without.
        self.later = random.Random(str(r.getstate()))
        self.memory = False  # whether the kernel's arrays `u` and `s` can be named

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def pick(self, *ways: tuple[float, Callable[[], str]]) -> str:
        """One of the ways, by weight."""
        return self.r.choices([w for _, w in ways], [k for k, _ in ways])[0]()

    # ---- integers and conditions

    def whole(self) -> str:
        names = [*self.scope.of("I"), *self.scope.of("I")]
        names += [self.thread] if self.thread else []
        names += [f"{x}.k" for x in self.scope.of("Node")]
        return self.r.choice(names) if names else "1"

    def index(self, size: int | str = SIZE) -> str:
        """An index below `size`, which may be an expression that is at least 1."""
        kind = self.r.random()
        if isinstance(size, int) and kind < 0.4:
            return str(self.r.randrange(size))
        if isinstance(size, int) and kind < 0.5:
            return str(-1 - self.r.randrange(size))
        if kind < 0.65:  # a quotient of what may be negative; `%` is as in C there
            return f"(({self.whole()} - {self.r.randrange(1, 4)}) // 2 + 2) % {size}"
        return f"({self.whole()} + {self.r.randrange(3)}) % {size}"

    def test(self, depth: int = 1) -> str:
        level = f"F({self.r.uniform(-0.8, 0.8):.3f})"
        ways: list[tuple[float, Callable[[], str]]] = [
            (5, lambda: f"{self.of('F', depth - 1)} {self.r.choice('<>')} {level}"),
            (2, lambda: f"{self.whole()} % 2 == {self.r.randrange(2)}"),
            (1, lambda: f"{self.whole()} {self.r.choice(['<', '<=', '>', '>=', '!='])} 2"),
            (1, lambda: f"F(-0.4) < {self.of('F', 0)} <= F(0.7)"),
        ]
        if self.scope.of("Node"):
            ways.append((1, lambda: f"{self.r.choice(self.scope.of('Node'))}.on"))
        if depth > 0:
            word = self.r.choice(["and", "or"])
            ways.append((1, lambda: f"({self.test(0)} {word} {self.test(0)})"))
            ways.append((1, lambda: f"not ({self.test(0)})"))
        usual = self.pick(*ways)
        return self.membership() or usual

    def membership(self) -> str:
        """A test whether a number is among some; mostly none."""
        if self.later.random() > 0.08:
            return ""
        names = self.scope.of("I") + [self.thread] * bool(self.thread) + ["2"]
        value, other = self.later.choice(names), self.later.choice(names)
        word = self.later.choice(["in", "not in"])
        return f"{value} {word} ({self.later.choice(['0', '1', '2'])}, {other}, 3)"

    # ---- values

    def of(self, t: str, depth: int = 2) -> str:
        if t == "I":
            return self.whole()
        if t in ("Pair", "Node"):
            return self.record(t, depth)
        if depth <= 0:
            return self.leaf(t)
        ways: list[tuple[float, Callable[[], str]]] = [
            (2, lambda: self.leaf(t)),
            (4, lambda: self.builtin(t, depth)),
            (0.6, lambda: f"({self.of(t, 0)} if {self.test(0)} else {self.of(t, depth - 1)})"),
            (0.4, lambda: f"wp.where({self.test(0)}, {self.of(t, 0)}, {self.of(t, depth - 1)})"),
            (1, lambda: self.call(t, depth)),
        ]
        if t == "F":
            ways.append((2, lambda: TAME[t].format(self.sum(depth))))
        elif t in COUNTS and t != "X":
            ways.append((1, lambda: self.construct(t, depth)))
            ways.append((1, lambda: TAME[t].format(self.scaled(t, depth))))
        return self.pick(*ways)

    def sum(self, depth: int) -> str:
        op = self.r.choice(["+", "-", "*", "*"])
        text = f"{self.of('F', depth - 1)} {op} {self.of('F', depth - 1)}"
        if self.r.random() < 0.15:
            return f"({text}) / (F(2.0) + {self.of('F', 0)} ** F(2.0))"
        return text

    def scaled(self, t: str, depth: int) -> str:
        x, y = self.of(t, depth - 1), self.of(t, 0)
        return self.r.choice([f"{x} + {y}", f"{x} - {y}", f"{x} * {self.of('F', 0)}",
                              f"{self.of('F', 0)} * {x}", f"-{x}", f"{x} / F(1.5)"])  # fmt: skip

    def construct(self, t: str, depth: int) -> str:
        if t == "V3" and self.r.random() < 0.2:
            return f"V3({self.of('F', depth - 1)})"
        return f"{t}({', '.join(self.of('F', 0) for _ in range(COUNTS[t]))})"

    def builtin(self, t: str, depth: int) -> str:
        c: Call = self.r.choice(calls()[t])
        return TAME[t].format(spelled(c, [self.of(a, depth - 1) for a in c.types], self.r))

    def call(self, t: str, depth: int) -> str:
        fits = [f for f in self.callable() if f.gives == [t]]
        return self.applied(self.r.choice(fits), depth) if fits else self.leaf(t)

    def applied(self, f: Function, depth: int) -> str:
        return f"{f.name}({', '.join(self.argument(t, depth - 1) for t in f.takes)})"

    def argument(self, t: str, depth: int) -> str:
        found = self.arrays().get(t)
        if found is None:
            return self.of(t, depth)
        if t == "array" and self.scope.grids and self.r.random() < 0.2:
            return f"line({self.r.choice(self.scope.grids)}, {self.index()})"
        if t == "array" and self.r.random() < 0.2:
            return self.chosen_array()
        if t == "Net" and self.scope.arrays and self.r.random() < 0.3:
            return f"moved({self.r.choice(found)}, {self.r.choice(self.scope.arrays)})"
        return self.r.choice(found)

    def chosen_array(self) -> str:
        """One of two arrays, which one is known at run time."""
        x, y = (self.r.choice(self.scope.arrays) for _ in range(2))
        if self.scope.grids and self.r.random() < 0.4:
            grid = self.r.choice(self.scope.grids)
            y = self.r.choice([f"{grid}[{self.index()}]", f"{grid}[:, {self.index()}]"])
        kind = self.r.random()
        if kind < 0.2:
            return f"wp.where({self.test(0)}, {x}, {y})"
        if kind < 0.5:
            return f"either({x}, {y}, {self.whole()})"
        return f"({x} if {self.test(0)} else {y})"

    def arrays(self) -> dict[str, list[str]]:
        """What can be passed for arrays, and structs with arrays."""
        s = self.scope
        return {"array": s.arrays, "local": s.locals, "Net": self.nets(), "pairs": s.pairs,
                "vectors": s.vectors, "grid": s.grids}  # fmt: skip

    def record(self, t: str, depth: int) -> str:
        names = self.scope.of(t)
        if names and self.r.random() < 0.4:
            return self.r.choice(names)
        ways: list[tuple[float, Callable[[], str]]] = []
        if depth > 0:
            fits = [f for f in self.callable() if f.gives == [t]]
            ways += [(1, lambda f=f: self.applied(f, depth)) for f in fits]
        if t == "Pair":
            ways += [
                (1, lambda: f"Pair({self.of('F', 0)}, {self.of('V3', 0)})"),
                (1, lambda: f"Pair(v={self.of('V3', 0)}, g={self.of('F', 0)})"),
            ]
            held = [f"{x}.p" for x in [*self.scope.of("Node"), *self.nets()]]
            ways += [(1, lambda x=x: x) for x in held]
            ways += [(1, lambda a=a: f"{a}[{self.index()}]") for a in self.scope.pairs]
            return self.pick(*ways)
        ways.append((1, lambda: f"Node({self.record('Pair', 0)}, {self.of('Q', 0)}, "
                     f"{self.of('M22', 0)}, {self.whole()} % 5, {self.test(0)})"))  # fmt: skip
        if self.memory:
            ways.append((1, lambda: f"s[{self.index(3)}]"))
        return self.pick(*ways)

    def callable(self) -> list[Function]:
        """Functions whose arguments can be had here."""
        have = self.arrays()
        return [f for f in self.functions if all(have.get(t, [t]) for t in f.takes)]

    def nets(self) -> list[str]:
        return self.scope.of("Net")

    def leaf(self, t: str) -> str:
        """A variable, a field, an element or a literal; tame."""
        names = self.scope.of(t)
        if names and self.r.random() < 0.5:
            name = self.r.choice(names)
            return TAME[t].format(name) if name in self.scope.wild else name
        found = self.places(t)
        if found and self.r.random() < 0.85:
            return TAME[t].format(self.r.choice(found)())
        if t == "F":
            return f"F({self.r.choice([0.5, -1.0, 0.25, 1.0])})"
        if t == "X":
            return "wp.transform_identity(dtype=F)"
        return TAME[t].format(f"{t}({', '.join(self.part() for _ in range(COUNTS[t]))})")

    def part(self) -> str:
        """A number that a composite is made of."""
        if self.r.random() < 0.3:
            return f"F({self.r.uniform(-1, 1):.2f})"
        return self.leaf("F")

    def cell(self, name: str, t: str) -> Callable[[], str]:
        """A component of a composite, picked by a number or at run time, or by name."""

        def write() -> str:
            if t in ("M22", "M33"):
                k = 2 if t == "M22" else 3
                form = self.r.choice(["{}[{}, {}]", "{}[{}][{}]"])
                return form.format(name, self.index(k), self.index(k))
            if t in ("V2", "V3", "Q") and self.r.random() < 0.4:
                return f"{name}.{self.r.choice('xyzw'[: COUNTS[t]])}"
            return f"{name}[{self.index(COUNTS[t])}]"

        return write

    def places(self, t: str) -> list[Callable[[], str]]:
        """Ways to write a place of a type: it can be read and stored to."""
        out: list[Callable[[], str]] = []

        def add(write: Callable[[], str], times: int = 1) -> None:
            out.extend([write] * times)

        pairs: list[Callable[[], str]] = [lambda x=x: x for x in self.scope.of("Pair")]
        pairs += [lambda a=a: f"{a}[{self.index()}]" for a in self.scope.pairs]
        nodes: list[Callable[[], str]] = [lambda x=x: x for x in self.scope.of("Node")]
        if self.memory:
            nodes.append(lambda: f"s[{self.index(3)}]")
        pairs += [lambda w=w: f"{w()}.p" for w in nodes]
        if t == "F":
            for a in self.scope.arrays:
                add(lambda a=a: f"{a}[{self.index(f'len({a})')}]")
            for a in self.scope.locals:
                add(lambda a=a: f"{a}[{self.index()}]")
            for a in self.scope.grids:
                form = self.r.choice(["{}[{}, {}]", "{}[{}][{}]"])
                add(lambda a=a, f=form: f.format(a, self.index(), self.index()))
            for w in pairs:
                add(lambda w=w: f"{w()}.g")
                add(lambda w=w: self.cell(f"{w()}.v", "V3")())
            for w in nodes:
                add(lambda w=w: self.cell(f"{w()}.m", "M22")())
                add(lambda w=w: self.cell(f"{w()}.q", "Q")())
            for c in ("V2", "V3", "Q", "M22", "M33", "X"):
                for x in self.scope.of(c):
                    add(self.cell(x, c))
            for a in self.scope.vectors:
                add(lambda a=a: self.cell(f"{a}[{self.index()}]", "V3")())
        elif t == "V3":
            out += [lambda w=w: f"{w()}.v" for w in pairs]
            for a in self.scope.vectors:
                add(lambda a=a: f"{a}[{self.index()}]")
        elif t in ("Q", "M22"):
            field = "q" if t == "Q" else "m"
            out += [lambda w=w: f"{w()}.{field}" for w in nodes]
        elif t == "V2":
            out += [lambda w=w: f"{w()}.m[{self.index(2)}]" for w in nodes]
            for x in self.scope.of("V3"):
                add(lambda x=x: f"{x}[{self.r.choice(['0:2', '1:3', ':-1', '1:', '::2'])}]")
        return out

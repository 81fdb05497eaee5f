"""Random kernels whose indices are sums, quotients and the like of what threads count."""

from __future__ import annotations

import random

HEAD = """import engine as wp


@wp.func
def flat(a: int, b: int, n: int):
    return a * n + b


@wp.func
def clipped(a: int, n: int):
    if a < 0:
        return 0
    if a >= n:
        return n - 1
    return a

"""
AXES = "ijk"
KINDS = ("load", "store", "store", "add", "add", "max", "take")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


class Writer:
    """Writes one kernel: `array` parameters of 1 and 2 dimensions, an integer, a grid."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        sizes = (1, 2, 3, 5, 8)
        self.dim = tuple(self.rng.choice(sizes) for _ in range(self.rng.choice((1, 2, 2, 3))))
        self.arity = self.rng.choice((len(self.dim), len(self.dim), 1, 2))
        self.names = list(AXES[: self.arity])
        self.lines: list[str] = []
        self.loops = 0
        # Every other kernel touches each array once, so that much depends on one index.
        self.once, self.left = self.rng.random() < 0.5, list("xyz")
        # What is mostly done with each array.
        self.kinds = {a: self.rng.choice(KINDS) for a in "xyz"}

    def add(self, text: str, depth: int) -> None:
        self.lines.append("    " * depth + text)

    def integer(self, depth: int = 2) -> str:
        """An int32 expression."""
        r = self.rng
        if depth == 0 or r.random() < 0.25:
            return r.choice([*self.names, *self.names, "n", str(r.randint(-3, 9))])
        a, b = self.integer(depth - 1), self.integer(depth - 1)
        small = str(r.randint(1, 6))
        return r.choice([
            f"({a} + {b})", f"({a} - {b})", f"({a} + {small})", f"({a} - {small})",
            f"({a} * {small})", f"({a} * n)", f"({a} // {small})", f"({a} % {small})",
            f"({a} // n)", f"({a} % n)", f"wp.min({a}, {b})", f"wp.max({a}, {small})",
            f"flat({a}, {b}, {small})", f"clipped({a}, {small})", f"(-{a})",
            f"wp.where({a} < {b}, {a}, {small})", f"int(wp.{r.choice(INTEGERS)}({a}))",
        ])  # fmt: skip

    def index(self) -> str:
        r = self.rng
        a, b, k = r.choice(self.names), r.choice(self.names), r.choice((2, 3, 4, 60, 100))
        if self.once and r.random() < 0.5:
            return f"{a} * {r.randint(1, 4)} + {r.choice((b, self.names[-1], self.names[-1], 'c'))}"
        return r.choice([
            *self.names, self.integer(1), self.integer(1), self.integer(2), f"{a} * {k} + {b}",
            f"{a} - {k}", f"int(wp.{r.choice(INTEGERS)}({a} * {k}))", "c",
        ])  # fmt: skip

    def condition(self) -> str:
        r = self.rng
        one = f"{self.integer(1)} {r.choice(('<', '<=', '>', '>=', '==', '!='))} {self.integer(0)}"
        if r.random() < 0.3:
            two = f"{r.choice(self.names)} {r.choice(('<', '==', '>='))} {r.randint(0, 4)}"
            one = f"{one} {r.choice(('and', 'or'))} {two}"
        return one if r.random() < 0.8 else f"not ({one})"

    def access(self, depth: int) -> None:
        r = self.rng
        self.add("s += 1.0", depth)
        if not self.left:
            return
        a = r.choice(self.left)
        if self.once:
            self.left.remove(a)
        at = f"{self.index()}, {self.index()}" if a == "z" else self.index()
        kind = self.kinds[a] if r.random() < 0.9 else r.choice(KINDS)
        if kind == "load":
            self.add(f"s += {a}[{at}]", depth)
        elif kind == "store":
            self.add(f"{a}[{at}] = s", depth)
        elif kind == "add":
            self.add(f"wp.atomic_add({a}, {at}, s)", depth)
        elif kind == "max":
            self.add(f"wp.atomic_max({a}, {at}, s)", depth)
        else:
            self.add(f"s = wp.atomic_add({a}, {at}, s)", depth)

    def block(self, depth: int, left: int, in_loop: bool) -> None:
        r = self.rng
        for _ in range(r.randint(1, 3)):
            kind = r.random()
            if left == 0 or kind < 0.5:
                self.access(depth)
            elif kind < 0.65:
                self.add(f"if {self.condition()}:", depth)
                self.block(depth + 1, left - 1, in_loop)
                if r.random() < 0.3:
                    self.add("else:", depth)
                    self.block(depth + 1, left - 1, in_loop)
            elif kind < 0.75:
                leave = r.choice(("return", "continue", "break") if in_loop else ("return",))
                self.add(f"if {self.condition()}:", depth)
                self.add(f"    {leave}", depth)
            elif kind < 0.85:
                self.add(f"m = {self.index()}", depth)
                self.access(depth)
                self.add(f"if {self.condition()}:", depth)
                self.add(f"    m = {self.index()}", depth)
                self.add(
                    "x[m] = s" if self.kinds["x"] == "store" else "wp.atomic_add(y, m, s)", depth
                )
            else:
                name = f"q{self.loops}"
                self.loops += 1
                start, stop = self.integer(0), self.integer(0)
                step = r.choice(("1", "1", "2", "-1"))
                self.add(f"for {name} in range({start}, {stop}, {step}):", depth)
                self.names.append(name)
                self.block(depth + 1, left - 1, True)
                if r.random() < 0.5:
                    self.add(f"c += {r.choice(self.names)}", depth + 1)
                self.names.pop()

    def kernel(self, name: str) -> str:
        f = "wp.array(dtype=float)"
        self.add("s = float(1.0)", 1)
        self.add(f"c = {self.names[0]}", 1)
        for _ in range(2):
            self.block(1, 2, False)
        names = ", ".join(AXES[: self.arity])
        head = f"def {name}(x: {f}, y: {f}, z: wp.array2d(dtype=float), n: int):"
        return "\n".join(["@wp.kernel", head, f"    {names} = wp.tid()", *self.lines, "", ""])


class Bounded(Writer):
    """The same with every index below `EXTENT`, so that it can be compiled and run."""

    def index(self) -> str:
        r = self.rng
        text, axes, kind = super().index(), AXES[: self.arity], r.random()
        if kind < 0.3:
            return r.choice(axes)
        if kind < 0.5:
            return f"{r.choice(axes)} * {r.randint(1, 4)} + {r.choice(axes)}"
        if kind < 0.75:
            return f"wp.clamp({text}, 0, {r.randint(0, 7)})"
        return f"wp.abs({text}) % {r.randint(1, 8)}"


EXTENT = 36

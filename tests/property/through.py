"""Random kernels with loops through components of local vectors and matrices, as text.

Bounds are constants, counters of loops around, or what is not known before; indices are made of
counters and of a variable that counts along. Values stay small.
"""

from __future__ import annotations

import random

HEAD = """from typing import Any
import engine as wp
F = wp.float64
V4 = wp.types.vector(4, F)
V3 = wp.types.vector(3, F)
M43 = wp.types.matrix((4, 3), F)


@wp.func
def mix(a: V4, k: int):
    s = F(0.0)
    for i in range(4):
        s += a[i] * F(i + k) * F(0.125)
    return s


@wp.func
def turned(a: V4):
    r = V4()
    for i in range(4):
        r[i] = a[3 - i] * F(0.5)
        if r[i] > F(1.0):
            return r
    return r

@wp.func
def found(a: V4, many: int):
    s = F(0.0)
    for i in range(4):
        s += a[i]
    for k in range(many):
        if s * F(k) > F(1.0):
            return k
    return -1


@wp.func
def clipped(a: V4, many: int):
    k = int(0)
    w = V4()
    for i in range(4):
        w[i] = a[3 - i] * F(0.5)
    while k < many + 2:
        if w[k % 4] > F(0.25):
            return w
        k += 1
    return V4(w[0], w[1], F(0.0), F(1.0))

"""
THREADS, WIDTH = 3, 4


class _Writer:
    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.lines: list[str] = []
        self.counters: list[tuple[str, int]] = []  # loop variables, and what they stay below
        self.made = 0
        self.known = self.r.random() < 0.6  # all places, before the kernel runs

    def say(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def index(self, size: int) -> str:
        """A place below a size."""
        r = self.r
        ways = [str(r.randrange(size))]
        if not self.known:
            ways += ["d"] if r.random() < 0.1 else [f"c % {size}"]
        for name, most in self.counters:
            if most <= size:
                ways += [name, name, f"{size - 1} - {name}", f"{name} - {size}"]
            ways += [f"({name} + {r.randrange(3)}) % {size}", f"{name} // {most}"]
        return r.choice(ways)

    def part(self) -> str:
        """A component of some value."""
        kind = self.r.random()
        if kind < 0.35:
            return f"{self.r.choice('vwx')}[{self.index(4)}]"
        if kind < 0.45:
            return f"u[{self.index(3)}]"
        if kind < 0.75:
            return f"m[{self.index(4)}, {self.index(3)}]"
        if kind < 0.85:
            return f"a[t, {self.index(4)}]"
        return "s"

    def number(self) -> str:
        r = self.r
        kind = r.random()
        if kind < 0.45:
            return self.part()
        if kind < 0.6:
            return f"({self.part()} + {self.part()}) * F(0.5)"
        if kind < 0.75:
            return f"{self.part()} * {self.part()} * F(0.25)"
        if kind < 0.8:
            return f"mix({r.choice('vwx')}, {r.randrange(3)})"
        if kind < 0.85:
            if r.random() < 0.4:
                return f"F(found({r.choice('vwx')}, d + {r.randrange(4)})) * F(0.25)"
            return f"wp.dot(v, {r.choice('wx')}) * F(0.0625)"
        if kind < 0.9 and self.counters:
            return f"F({r.choice(self.counters)[0]}) * F(0.1)"
        return f"wp.min(wp.max({self.part()}, F(-2.0)), F(2.0))"

    def cond(self) -> str:
        r = self.r
        if self.counters and r.random() < 0.5:
            name = r.choice(self.counters)[0]
            return r.choice([f"{name} == {r.randrange(3)}", f"{name} % 2 == 0", f"{name} < c"])
        return f"{self.part()} > {self.part()}"

    def bounds(self) -> tuple[str, int]:
        r = self.r
        size = r.choice([2, 3, 4])
        ways = [(f"range({size})", size)] * 6
        ways += [(f"range({size - 1}, -1, -1)", size), (f"range(0, {size}, 2)", size)]
        ways += [(f"range(1, {size})", size), ("range(0)", 1)]
        ways += [] if self.known else [("range(d)", 2)]
        for name, most in self.counters:
            ways += [(f"range({name} + 1)", most), (f"range({name}, {most})", most)] * 2
        return r.choice(ways)

    def stmt(self, depth: int, left: int) -> None:
        r = self.r
        kind = r.random()
        if left and kind < 0.3:
            text, most = self.bounds()
            name = f"k{self.made}"
            self.made += 1
            if r.random() < 0.3:
                self.say(depth, "c = 0")
            self.say(depth, f"for {name} in {text}:")
            self.counters.append((name, most))
            self.block(depth + 1, left - 1)
            if r.random() < 0.3:
                self.say(depth + 1, "c += 1")
            if r.random() < 0.06:
                self.say(depth + 1, f"if {self.cond()}:")
                self.say(depth + 2, r.choice(["break", "continue", "return"]))
                self.say(depth + 1, f"s = {self.number()}")
            self.counters.pop()
        elif left and kind < 0.4:
            self.say(depth, f"if {self.cond()}:")
            self.block(depth + 1, left - 1)
            if r.random() < 0.3:
                self.say(depth, "else:")
                self.block(depth + 1, left - 1)
        elif kind < 0.7:
            op = r.choice(["=", "=", "+=", "-=", "*="])
            where = f"{r.choice('vwx')}[{self.index(4)}]"
            if r.random() < 0.4:
                where = f"m[{self.index(4)}, {self.index(3)}]"
            value = "F(0.5)" if op == "*=" else self.number()
            self.say(depth, f"{where} {op} {value}")
        elif kind < 0.8:
            self.say(depth, f"s = {self.number()}" if r.random() < 0.5 else f"s += {self.number()}")
        elif kind < 0.84:
            self.say(depth, f"{r.choice('vw')} = {r.choice(WHOLE)}".replace("#", self.number()))
        elif kind < 0.88:
            self.say(depth, r.choice([f"m[{self.index(4)}] = u", f"u = m[{self.index(4)}]",
                                      "m = m * F(0.5)", "u = v * m * F(0.125)"]))  # fmt: skip
        elif kind < 0.92:
            i, j = self.index(4), self.index(4)
            for line in (f"e = v[{i}]", f"v[{i}] = v[{j}]", f"v[{j}] = e"):
                self.say(depth, line)
        elif kind < 0.96:
            op = r.choice(["+=", "="])
            self.say(depth, f"out[t, {self.index(4)}] {op} {self.number()}")
        elif kind < 0.97:
            self.say(depth, "for q in range(d + 1):")
            self.say(depth + 1, f"if {self.part()} * F(q) > F(1.0):")
            self.say(depth + 2, "return")
        else:
            self.say(depth, f"s += a[t, {self.index(4)}] * p[{self.index(4)}]")

    def block(self, depth: int, left: int) -> None:
        for _ in range(self.r.choice([1, 2, 2, 3])):
            self.stmt(depth, left)


WHOLE = ("w", "x * F(0.5)", "V4(#)", "V4(s, #, F(1.0), v[0])", "(v + w) * F(0.5)", "turned(x)",
         "clipped(w, d)")  # fmt: skip
PARAMETERS = "a: wp.array2d(dtype=F), p: wp.array(dtype=F), d: int, out: wp.array2d(dtype=F)"


def program(seed: int) -> str:
    """The text of a kernel `k<seed>`; `HEAD` stands before."""
    w = _Writer(seed)
    w.say(0, '@wp.kernel(module="written_out")')
    w.say(0, f"def k{seed}({PARAMETERS}):")
    first = ["t = wp.tid()", "v = V4()", "w = V4(a[t, 0], a[t, 1], F(0.5), a[t, 3])", "x = V4()",
             "u = V3(a[t, 2])", "m = M43()", "s = a[t, 1]", "e = F(0.0)", "c = int(0)"]  # fmt: skip
    for line in first:
        w.say(1, line)
    w.say(1, "for i in range(4):")
    w.say(2, "x[i] = a[t, i]")
    w.say(2, "m[i, i % 3] = p[i]")
    for _ in range(w.r.choice([3, 5, 8])):
        w.stmt(1, 3)
    w.say(1, "for i in range(4):")
    w.say(2, "out[t, i] += v[i] + w[i] * F(2.0) - x[i] + m[i, 0] + m[i, 1] * F(3.0) - m[i, 2]")
    w.say(1, "out[t, 0] += s + u[0] - u[1] * F(2.0) + u[2]")
    return "\n".join(w.lines) + "\n\n"

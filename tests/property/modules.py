"""Statements, functions, kernels and modules of random source text."""

from __future__ import annotations

import random

from tests.property.calls import several, spelled
from tests.property.integers import INTEGERS, drawn_range
from tests.property.sources import (
    COUNTS,
    LOCALS,
    PARAMETERS,
    PRELUDE,
    SIZE,
    TAKEN,
    TAME,
    Expressions,
    Function,
    Scope,
)

INDENT = "    "
ANNOTATIONS = {"I": "int", "array": "wp.array(dtype=F)", "local": "wp.array(dtype=F)",
               "pairs": "wp.array(dtype=Pair)", "vectors": "wp.array(dtype=V3)",
               "grid": "wp.array2d(dtype=F)"}  # fmt: skip
WHOLE = 7  # integer variables stay below this


class Body(Expressions):
    """Writes the statements of one function or kernel."""

    def __init__(
        self, r: random.Random, functions: list[Function], thread: str, gives: list[str] | None
    ) -> None:
        super().__init__(r, functions, thread)
        self.gives = gives  # None for a kernel
        self.lines: list[str] = []
        self.depth = 1
        self.budget = 14 if gives is not None else 26
        self.loops = 0
        self.turn = ""  # a number that is another in each iteration of the innermost loop
        self.open = False  # whether `n` bounds loops here

    def line(self, text: str) -> None:
        self.lines.append(INDENT * self.depth + text)

    def block(self, least: int = 1) -> None:
        """Statements one level down; what they name is gone after them."""
        outer, self.scope = self.scope, Scope(self.scope)
        self.depth += 1
        for _ in range(self.r.randint(least, 4)):
            self.statement()
        if self.lines[-1].endswith(":"):
            self.line("pass")
        self.depth -= 1
        self.scope = outer

    def statement(self) -> None:
        if self.budget <= 0:
            return self.assign()
        self.budget -= 1
        deep = self.depth >= 4
        ways = [
            (0 if deep else 3, self.branch),
            (0 if deep else 3, self.counted),
            (0 if deep else 2, self.whiled),
            (5 if self.loops else 2 if self.depth > 1 else 0, self.jump),
            (4, self.store),
            (4, self.update),
            (2, self.atomic),
            (2, self.count_up),
            (2, self.results),
            (2, self.view),
            (1, self.local),
            (0.6 if self.nets() else 0, self.net),
            (1.5 if self.scope.arrays else 0, self.choose),
            (2, self.component),
            (1, self.swap),
            (3, self.define),
            (4, self.assign),
        ]
        return self.r.choices([w for _, w in ways], [k for k, _ in ways])[0]()

    # ---- control flow

    def branch(self) -> None:
        self.line(f"if {self.test()}:")
        both = self.r.random() < 0.3
        name, t = self.fresh("x"), self.r.choice(LOCALS)
        self.block()
        if both:
            self.lines.append(f"{INDENT * (self.depth + 1)}{name} = {self.of(t)}")
        if self.r.random() < 0.3:
            self.line(f"elif {self.test()}:")
            self.block()
            if both:
                self.lines.append(f"{INDENT * (self.depth + 1)}{name} = {self.of(t)}")
        if both or self.r.random() < 0.5:
            self.line("else:")
            self.block()
            if both:
                self.lines.append(f"{INDENT * (self.depth + 1)}{name} = {self.of(t)}")
        if both:
            self.scope.add(t, name)

    def bound(self) -> str:
        return self.r.choice(["n", "n", "3", f"{self.whole()} % 4"]) if self.open else "3"

    def typed(self) -> str:
        """The head of a loop over another integer type; gives the name of its variable."""
        k, t = self.fresh("k"), self.r.choice(INTEGERS)
        start, stop, step = drawn_range(self.r, t)
        bounds = [f"wp.{t.name}({x})" for x in (start, stop, step or 1)]
        if bounds[2].endswith("(1)") and self.r.random() < 0.3:
            bounds.pop()
        self.line(f"for {k} in range({', '.join(bounds)}):")
        return k

    def counted(self) -> None:
        if self.r.random() < 0.4:
            k, each = self.fresh("k"), self.typed()
            # The lowest bits are the same however far a conversion wraps.
            self.lines.append(f"{INDENT * (self.depth + 1)}{k} = int({each}) & 3")
            return self.looped(k)
        k = self.fresh("k")
        ranges = [f"{self.bound()}", f"1, {self.bound()}", f"0, {self.bound()}, 2", "3, -1, -1",
                  f"{self.whole()} % 3, {self.bound()}", f"{self.bound()}, 0, -2"]  # fmt: skip
        self.line(f"for {k} in range({self.r.choice(ranges)}):")
        return self.looped(k)

    def looped(self, k: str) -> None:
        """The body of a loop in which `k` is a small integer."""
        self.scope.add("I", k)
        self.inside(k)
        self.scope.names["I"].remove(k)

    def inside(self, k: str) -> None:
        """The statements of a loop whose iterations differ in `k`."""
        outer, self.turn = self.turn, k
        self.loops += 1
        # Before all jumps, so that it counts which iterations run, or behind them.
        if self.r.random() < 0.6:
            self.follow()
        self.block(2)
        if self.r.random() < 0.4:
            self.follow()
        self.loops -= 1
        self.turn = outer
        self.otherwise()

    def otherwise(self) -> None:
        """`else` of a loop, sometimes, which may jump in the loop around it."""
        if self.later.random() > 0.3:
            return
        self.line("else:")
        self.depth += 1
        self.line(f"z = wp.sin(z * F({self.later.choice([0.5, 1.5])}) + F(0.3))")
        if self.loops and self.later.random() < 0.4:
            self.line(f"if {self.turn} % 2 == {self.later.randrange(2)}:")
            self.lines.append(INDENT * (self.depth + 1) + self.later.choice(["break", "continue"]))
        self.depth -= 1

    def follow(self) -> None:
        """Makes the results depend on that this place was reached, and in which iteration."""
        inner = INDENT * (self.depth + 1)
        self.lines.append(f"{inner}z = wp.sin(z + F({self.turn}) * F(0.7))")

    def whiled(self) -> None:
        k = self.fresh("w")
        self.line(f"{k} = 0")
        test = f"{k} < {self.bound()}"
        if self.r.random() < 0.5:
            test += f" and {self.test(0)}"
        self.line(f"while {test}:" if self.r.random() < 0.8 else "while True:")
        endless = self.lines[-1].endswith("True:")
        self.depth += 1
        # The counter moves first, so that `continue` cannot loop for ever.
        if endless:
            self.line(f"if not ({test}):")
            self.lines.append(INDENT * (self.depth + 1) + "break")
        self.line(f"{k} += 1")
        self.depth -= 1
        self.inside(k)

    def jump(self) -> None:
        # Often in some iterations and not in others.
        count = f"{self.turn} % 2 == {self.r.randrange(2)}"
        self.line(f"if {count if self.loops and self.r.random() < 0.5 else self.test()}:")
        self.depth += 1
        if self.r.random() < 0.5:
            self.assign()
        if self.loops and self.r.random() < 0.75:
            self.line(self.r.choice(["break", "continue", "continue"]))
        else:
            self.finish()
        self.depth -= 1

    def finish(self) -> None:
        if self.gives is None:
            self.line(f"a[i % {SIZE}] += z")
            self.line("return")
        else:
            values = [self.of(t, 1) for t in self.gives]
            if "F" in self.gives:
                at = self.gives.index("F")
                values[at] = f"wp.sin({values[at]} + z)"
            self.line(f"return {', '.join(values)}")

    # ---- variables

    def define(self) -> None:
        t = self.r.choice(LOCALS)
        value = self.of(t)
        name = self.fresh("x")
        self.line(f"{name}: {t} = {value}" if self.r.random() < 0.1 else f"{name} = {value}")
        self.scope.add(t, name, t in TAME and self.r.random() < 0.4)

    def variables(self) -> list[tuple[str, str]]:
        return [(t, x) for t in dict.fromkeys(LOCALS) for x in self.scope.of(t)]

    def assign(self) -> None:
        found = self.variables()
        if not found:
            return self.define()
        t, name = self.r.choice(found)
        return self.line(f"{name} = {self.of(t)}")

    def count_up(self) -> None:
        names = [x for x in self.scope.of("I") if x[0] == "q"]
        if not names:
            name = self.fresh("q")
            self.line(f"{name} = {self.whole()} % {WHOLE}")
            self.scope.add("I", name)
            return
        name = self.r.choice(names)
        op = self.r.choice(["* 2 + 1", "// 2 + 3", "* 3", "+ 5", "* -3 // 2 + 9"])
        self.line(f"{name} = ({name} {op}) % {WHOLE}")

    def component(self) -> None:
        """A component or a field of a variable, set or changed in place."""
        found = [(t, x) for t, x in self.variables() if t != "F"]
        if self.scope.of("V3") and self.r.random() < 0.1:
            part = self.r.choice(["0:2", "1:", "::2"])
            return self.line(f"{self.r.choice(self.scope.of('V3'))}[{part}] = {self.of('V2')}")
        if not found:
            return self.define()
        t, name = self.r.choice(found)
        if t == "Node":
            inner = self.r.choice(["p", "q", "m", "on", "k"])
            if inner == "on":
                return self.line(f"{name}.on = {self.test()}")
            if inner == "k":
                return self.line(f"{name}.k = {self.whole()} % 5")
            if inner == "p" and self.r.random() < 0.4:
                return self.line(f"{name}.p = {self.of('Pair')}")
            t, name = {"p": "Pair", "q": "Q", "m": "M22"}[inner], f"{name}.{inner}"
        if t == "Pair":
            if self.r.random() < 0.5:
                return self.change(f"{name}.g", "F", True)
            t, name = "V3", f"{name}.v"
            if self.r.random() < 0.4:
                return self.change(name, "V3", True)
        if t in ("M22", "M33") and self.r.random() < 0.3:
            row = "V" + t[-1]
            k = self.index(int(t[-1]))
            return self.change(f"{name}[{k}]", row, name in self.scope.wild)
        return self.change(self.cell(name, t)(), "F", name in self.scope.wild)

    def change(self, place: str, t: str, free: bool) -> None:
        """Sets a place, or changes it in place where its value need not stay small."""
        ops = ["=", "*="] + (["+=", "-="] if free else [])
        op = self.r.choice(ops)
        if op == "*=":
            t = "F"
        self.line(f"{place} {op} {self.of(t)}")

    def swap(self) -> None:
        """Values that change places, or that depend on what they replace."""
        records = [(t, x) for t in ("Pair", "Node") for x in self.scope.of(t)]
        if records and self.r.random() < 0.4:
            t, x = self.r.choice(records)
            pair = x if t == "Pair" else f"{x}.p"
            others = [y for y in self.scope.of(t) if y != x]
            if others and self.r.random() < 0.5:
                y = self.r.choice(others)
                return self.line(self.r.choice([f"{x}, {y} = {y}, {x}", f"{y} = {x}"]))
            return self.line(f"{pair} = Pair(wp.sin({pair}.v[{self.index(3)}]), "
                             f"tame(V3({pair}.v.z, {pair}.g, {pair}.v[0])))")  # fmt: skip
        places = [x for x in self.scope.of("F") if x not in self.scope.wild]
        arrays = [w() for w in self.places("F")]
        if len(arrays) > 1 and self.r.random() < 0.6:
            x, y = self.r.sample(arrays, 2)
            self.line(f"{x}, {y} = {y}, {x}")
        elif len(places) > 1:
            x, y = self.r.sample(places, 2)
            self.line(self.r.choice([f"{x}, {y} = {y}, {x}", f"{x} = {y} = {self.of('F')}"]))
        else:
            self.assign()
        return None

    def results(self) -> None:
        """A call with several results."""
        fits = [f for f in self.callable() if len(f.gives) > 1]
        fits.append(Function("own", ["F", "F"], ["F", "F"]))
        if fits and self.r.random() < 0.7:
            f = self.r.choice(fits)
            gives, text = f.gives, self.applied(f, 2)
        else:
            c = self.r.choice(several())
            gives, text = list(c.results), spelled(c, [self.of(t, 1) for t in c.types], self.r)
        names = [self.fresh("x") for _ in gives]
        self.line(f"{', '.join(names)} = {text}")
        for t, name in zip(gives, names, strict=True):
            self.scope.add(t, name, t in TAME)

    # ---- arrays

    def place(self) -> tuple[str, str]:
        """A place in memory and its type."""
        t = self.r.choice(["F", "F", "F", "V3", "Q", "M22", "V2"])
        found = self.places(t)
        return (self.r.choice(found)(), t) if found else ("", t)

    def store(self) -> None:
        if self.memory and self.r.random() < 0.15:
            return self.line(f"s[{self.index(3)}] = {self.of('Node')}")
        if self.scope.pairs and self.r.random() < 0.15:
            return self.line(f"{self.r.choice(self.scope.pairs)}[{self.index()}] = "
                             f"{self.of('Pair')}")  # fmt: skip
        place, t = self.place()
        return self.line(f"{place} = {self.of(t)}") if place else self.assign()

    def update(self) -> None:
        place, t = self.place()
        root = place.split("[")[0].split(".")[0]
        if not place or (root in dict(map(reversed, self.variables())) and
                         root not in self.scope.wild):  # fmt: skip
            return self.assign()
        return self.change(place, t, True)

    def atomic(self) -> None:
        if not self.scope.arrays:
            return self.assign()
        kind = self.r.choice(["add", "add", "sub", "min", "max"])
        options = [f"{self.r.choice(self.scope.arrays)}, {self.index(1)}"]
        options += [f"{g}, {self.index()}, {self.index()}" for g in self.scope.grids]
        text = f"wp.atomic_{kind}({self.r.choice(options)}, {self.of('F')})"
        if self.memory and self.r.random() < 0.2:
            array = self.r.choice(self.scope.vectors)
            text = f"wp.atomic_{kind}({array}, {self.index()}, {self.of('V3')})"
            return self.line(text)
        if self.r.random() < 0.5:
            return self.line(text)
        name = self.fresh("x")
        self.line(f"{name} = {text}")
        self.scope.add("F", name, True)
        return None

    def view(self) -> None:
        if not self.scope.grids and not self.scope.arrays:
            return self.assign()
        name = self.fresh("r")
        ways = [f"{g}[{self.index()}]" for g in self.scope.grids]
        ways += [f"{g}[:, {self.index()}]" for g in self.scope.grids]
        ways += [f"{a}[{w}]" for a in self.scope.arrays if a[0] in "an"
                 for w in ("1:", ":3", "::-1", "0:4:2", f"{self.whole()} % 2 : 3")]  # fmt: skip
        if not ways:
            return self.assign()
        ways += [f"line({g}, {self.index()})" for g in self.scope.grids]
        self.line(f"{name} = {self.r.choice(ways)}")
        self.scope.arrays.append(name)
        return None

    def net(self) -> None:
        """A struct with arrays of its own, some of them another one's."""
        name = self.fresh("o")
        other = self.r.choice(self.nets())
        self.line(self.r.choice([f"{name} = {other}", f"{name} = Net(w={other}.w, t={other}.t, "
                                 f"c={other}.c, p={self.of('Pair')})"]))  # fmt: skip
        if self.r.random() < 0.5:
            self.line(f"{name}.w = {self.r.choice(self.scope.arrays)}")
        self.line(f"{name}.p.g = {self.of('F')}")
        self.scope.add("Net", name)
        self.scope.arrays.append(f"{name}.w")
        self.scope.pairs.append(f"{name}.c")

    def choose(self) -> None:
        """A name, or a struct's field, that comes to mean one of several arrays."""
        names = [a for a in self.scope.arrays if a[0] == "h"]
        fields = [x for x in self.nets() if x[0] == "o"]
        if fields and self.r.random() < 0.3:
            x = self.r.choice(fields)
            return self.line(self.r.choice([
                f"{x}.w = {self.r.choice(self.scope.arrays)}", f"{x}.w = {self.chosen_array()}",
                f"{x} = {self.r.choice(self.nets())} if {self.test()} else {x}",
            ]))  # fmt: skip
        if len(names) > 1 and self.r.random() < 0.3:
            x, y = self.r.sample(names, 2)
            return self.line(f"{x}, {y} = {y}, {x}")
        if names and self.r.random() < 0.5:
            return self.line(f"{self.r.choice(names)} = {self.r.choice(self.scope.arrays)}")
        name = self.fresh("h")
        self.line(f"{name} = {self.chosen_array()}")
        self.scope.arrays.append(name)
        if self.r.random() < 0.5:
            self.line(f"if {self.test(0)}:")
            self.line(f"{INDENT}{name} = {self.r.choice(self.scope.arrays)}")
        return None

    def local(self) -> None:
        name = self.fresh("l")
        self.line(f"{name} = wp.zeros(shape={SIZE}, dtype=F)")
        self.scope.locals.append(name)
        self.line(f"for {name}k in range({SIZE}):")
        self.line(f"{INDENT}{name}[{name}k] = wp.sin(F({name}k) + {self.of('F', 0)})")


def _function(r: random.Random, name: str, earlier: list[Function]) -> tuple[Function, str]:
    takes = [t for t in TAKEN if r.random() < 0.45] or ["F"]
    gives = r.choice([["F"], ["F"], ["V3"], ["Pair"], ["F", "V3"], ["Pair", "F"], ["Node"]])
    body = Body(r, earlier, "", gives)
    params = []
    for k, t in enumerate(takes):
        p = "net" if t == "Net" else f"p{k}"
        params.append(f"{p}: {ANNOTATIONS.get(t, t)}")
        if t == "array":
            body.scope.arrays.append(p)
        elif t == "Net":
            body.scope.add("Net", p)
            body.scope.arrays.append("net.w")
            body.scope.grids.append("net.t")
            body.scope.pairs.append("net.c")
        elif t in body.arrays():
            body.arrays()[t].append(p)
        else:
            body.scope.add(t, p)
    body.line(f"y = {body.of('F')}")
    body.scope.add("F", "y")
    body.line("z = F(0.0)")
    for _ in range(r.randint(2, 5)):
        body.statement()
    body.finish()
    text = ["@wp.func", f"def {name}({', '.join(params)}):", *body.lines]
    return Function(name, takes, gives), "\n".join(text)


def kernel(seed: int) -> str:
    """A kernel named `kernel_{seed}` and the functions that it calls, as text."""
    r = random.Random(seed)
    functions: list[Function] = []
    texts = []
    for k in range(r.choice([0, 1, 2, 3])):
        made, text = _function(r, f"f{seed}_{k}", list(functions))
        functions.append(made)
        texts.append(text)
    body = Body(r, functions, "i", None)
    body.open = body.memory = True
    scope = body.scope
    scope.arrays += ["a", "net.w", "ix"]
    scope.grids += ["m", "net.t"]
    scope.vectors += ["u"]
    scope.pairs += ["net.c"]
    scope.add("Net", "net")
    body.line("i = wp.tid()")
    body.local()
    for t in ("F", "V3", r.choice(list(COUNTS)), r.choice(["Pair", "Node"])):
        name = body.fresh("x")
        body.line(f"{name} = {body.of(t)}")
        scope.add(t, name)
    body.line("z = F(0.0)")
    for _ in range(r.randint(4, 8)):
        body.statement()
    for k, name in enumerate([x for t, x in body.variables() if t == "F"][:3]):
        body.line(f"a[(i + {k}) % {SIZE}] += wp.sin({name})")
    body.line(f"a[(i + 1) % {SIZE}] += z")
    texts.append("\n".join(["@wp.kernel", f"def kernel_{seed}({PARAMETERS}):", *body.lines]))
    return "\n\n\n".join(texts)


def module(seeds: list[int], scalar: str = "float64") -> str:
    """The text of a module with the kernels of the seeds."""
    return "\n\n\n".join([PRELUDE.format(scalar=scalar), *map(kernel, seeds)]) + "\n"

"""Random host programs, as text.

A program makes arrays and views of them, and a step: blocks of tapes, what runs beside them,
backward passes. The step runs a few times at new values. The gradient of each tape is well defined:
nothing but the tape itself writes what it has read before its last backward pass has run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.property.hosts.kernels import ROWS, N
from tests.property.hosts.operands import Operand, Operands, PendingTape


@dataclass
class Program:
    """text: a function `program(wp, k, data, see, drive)`.

    direct: whether it may read on the host, or show arrays that its step makes, as no captured
    graph can. aliased: whether some launch reads and writes one place by two names, which a GPU
    refuses to differentiate.
    """

    text: str
    direct: bool
    aliased: bool
    steps: int


class Writer(Operands):
    """Writes one program from a seed."""

    # ---- operations

    def operation(self) -> None:
        """One line that computes."""
        kinds = [*[self.launch] * 10, *[self.vectors] * 2, *[self.matrices] * 3]
        if not (self.pure and self.active):
            kinds += [
                *[self.both] * 2, *[self.pairs] * 2, *[self.copies] * 4, *[self.fills] * 4,
                *[self.operators] * 3, *[self.fresh] * 3, self.mapped, self.chosen, self.assigned,
                self.host, self.command,
            ]  # fmt: skip
        self.pick(kinds)()

    def run(self, kernel: str, reads: list[Operand], writes: list[Operand], more: str = "",
            dim: str = str(N), order: str = "", certain: bool = True) -> None:  # fmt: skip
        """A launch, if its writes are free, and its operands lie apart (or may not)."""
        if not all(map(self.is_free, writes)):
            return
        met = any(w.meets(r) for w in writes for r in reads)
        if met and (self.graphs or not self.chance(0.15)):
            return
        self.aliased = self.aliased or met
        inputs = order or ", ".join([*(a.text for a in reads), *([more] if more else [])])
        split = order or self.chance(0.3)
        given = ", ".join([inputs] * bool(inputs) + [] if order else
                          [*([inputs] if inputs else []), *(a.text for a in writes)])  # fmt: skip
        if split:
            self.line(f"wp.launch(k.{kernel}, {dim}, [{given}])")
        else:
            outputs = ", ".join(a.text for a in writes)
            self.line(f"wp.launch(k.{kernel}, {dim}, inputs=[{inputs}], outputs=[{outputs}])")
        self.reads(*reads)
        for w in writes:
            self.wrote(w, certain and not met)

    def launch(self) -> None:
        a, b, c, out = (self.operand() for _ in range(4))
        k = self.number()
        which = self.pick(["product"] * 4 + ["wave", "in_place", "mixed_in", "halve", "some",
                                            "added", "plus", "power"] * 2)  # fmt: skip
        if which == "product":
            self.run(which, [a, b, c], [out])
        elif which == "wave":
            self.run(which, [a], [out], k)
        elif which == "power":
            self.run(which, [a], [out], str(int(self.r.integers(4))))
        elif which in ("in_place", "halve"):
            self.run(which, [], [out], order=out.text + (f", {k}" if which == "in_place" else ""))
            self.reads(out)
        else:
            self.run(which, [a], [out], certain=False)
            if which != "some":
                self.reads(out)

    def matrices(self) -> None:
        m = self.operand((ROWS, N))
        if m is None:
            return self.launch()
        if self.chance(0.6):
            return self.run("columns", [m], [self.operand()])
        b = self.operand((ROWS,))
        if b is not None:
            self.run("spread", [self.operand(), b], [m], dim=f"({ROWS}, {N})")
        return None

    def vectors(self) -> None:
        v, w = self.operand(kind="vector"), self.operand(kind="vector")
        if v is None or w is None:
            return self.launch()
        if self.chance(0.5):
            return self.run("dotted", [v, w], [self.operand()])
        return self.run("turned", [v, self.operand()], [w])

    def pairs(self) -> None:
        p = self.operand(kind="pair")
        if p is None:
            return self.launch()
        if self.chance(0.5):
            return self.run("unpacked", [p], [self.operand()])
        self.run("packed", [self.operand()], [p], certain=False)
        return self.reads(p)

    def both(self) -> None:
        name, a, b = self.pick(self.structs, (None, None, None))
        if name is None:
            return self.launch()
        if self.chance(0.5):
            out = self.operand()
            return self.run("from_both", [a, b], [out], order=f"{name}, {out.text}")
        x = self.operand()
        return self.run("to_both", [x, a], [b], order=f"{x.text}, {name}")

    def chosen(self) -> None:
        a, at = self.operand(), self.r.integers(N, size=N).tolist()
        self.run("chosen", [a], [out := self.operand()],
                 order=f"wp.indexed({a.text}, {at}), {out.text}")  # fmt: skip

    def copies(self) -> None:
        shape = self.pick([(N,)] * 4 + [(ROWS, N), (2 * N,)])
        dest, src = self.operand(shape), self.operand(shape)
        if dest is None or src is None or not self.is_free(dest) or dest.meets(src):
            return
        if len(shape) == 1 and self.chance(0.3) and dest.contiguous and src.contiguous:
            d, s = (int(x) for x in self.r.integers(2, size=2))
            self.line(f"wp.copy({dest.text}, {src.text}, {d}, {s}, 2)")
            part = Operand(f"{dest.text}[{d}:{d + 2}]", dest.root, dest.at[d : d + 2], dest.wanted)
            self.wrote(part, True)
        else:
            way = self.pick(["wp.copy({0}, {1})", "{0}.assign({1})", "wp.copy({0}, {1})"])
            self.line(way.format(dest.text, src.text))
            self.wrote(dest, True)

    def fills(self) -> None:
        a = self.operand(self.pick([(N,)] * 3 + [(2 * N,), (ROWS, N)])) or self.operand()
        for _ in range(int(self.r.integers(2))):
            a = self.view(a, False) or a
        if self.is_free(a):
            self.line(self.pick([f"{a.text}.zero_()", f"{a.text}.fill_({self.number()})",
                                 f"{a.text}[:] = {self.number()}"]))  # fmt: skip
            self.wrote(a, True)

    def assigned(self) -> None:
        a = self.operand()
        if self.is_free(a):
            self.line(f"{a.text}.assign({self.data(a.shape)})")
            self.wrote(a, True)

    def operators(self) -> None:
        a, b = self.operand(), self.operand()
        if self.chance(0.3):
            if self.is_free(a) and not a.meets(b):
                name = self.name("v")  # `a[0] += b` would store once more
                self.line(f"{name} = {a.text}")
                self.line(f"{name} {self.pick(['+=', '*='])} {b.text}")
                self.reads(a, b)
                self.wrote(a, False)
            return
        text = self.pick([f"{a.text} + {b.text}", f"{a.text} * {b.text}", f"{a.text} - {b.text}",
                          f"{a.text} * {self.number()}", f"-{a.text}"])  # fmt: skip
        self.reads(a, b)
        self.result(text, a.wanted or (b.wanted and b.text in text))

    def mapped(self) -> None:
        a, b = self.operand(), self.operand()
        self.reads(a, b)
        if self.chance(0.5):
            return self.result(f"wp.map(k.blended, {a.text}, {b.text})", a.wanted or b.wanted)
        out = self.operand()
        if self.is_free(out) and not (out.meets(a) or out.meets(b)):
            self.line(f"wp.map(k.blended, {a.text}, {b.text}, out={out.text})")
            self.wrote(out, True)
        return None

    def result(self, text: str, wanted: bool) -> None:
        """An array that an expression makes: kept by a name, copied somewhere, or let go of."""
        if self.lone or self.chance(0.5):
            out = self.operand()
            if self.is_free(out):
                self.line(f"wp.copy({out.text}, {text})")
                self.wrote(out, True)
            return
        name = self.name("f")
        self.line(f"{name} = {text}")
        if self.fickle:  # it may well have a gradient only where those have
            self.fickle.add(name)
        self.roots[name], self.sizes[name] = wanted, N
        made = Operand(name, name, np.arange(N), wanted)
        self.operands.append(made)
        if self.active is not None:
            self.active.outputs.append(made)

    def fresh(self) -> None:
        a = self.operand()
        if self.lone:
            return
        if self.chance(0.5):
            self.root(fresh=True)
        else:
            self.result(self.pick([f"wp.clone({a.text})", f"wp.zeros_like({a.text})",
                                   f"wp.ones_like({a.text})"]), a.wanted)  # fmt: skip

    def host(self) -> None:
        """The host reads an array, and may keep the view for a while."""
        if not self.graphs:
            a = self.operand()
            if self.chance(0.4):
                self.line(f"kept[:] = [{a.text}.numpy()]")  # alive beyond the next step
            else:
                self.line(f"see({a.text})")

    def command(self) -> None:
        if self.active is None and self.commands:
            name, reads, writes = self.pick(self.commands)
            if all(map(self.is_free, writes)):
                self.line(f"{name}.launch()")
                del reads

    # ---- blocks

    def block(self) -> None:
        """The block of a tape, a new one or one that is used again."""
        tape = PendingTape(self.name("t"))
        lasting = [t for t in self.tapes if t not in [p.name for p in self.pending]]
        if lasting and self.chance(0.4):
            tape.name = self.pick(lasting)
            self.line(f"{tape.name}.reset()")
        else:
            self.line(f"{tape.name} = wp.Tape()")
        self.line(f"with {tape.name}:")
        self.indent += 1
        self.active = tape
        self.pending.append(tape)
        before = len(self.lines)
        for _ in range(int(self.r.integers(2, 9))):
            self.operation()
        if len(self.lines) == before:
            self.line("pass")
        if self.chance(0.15):  # it goes on after something else
            self.active = None
            self.indent -= 1
            for _ in range(int(self.r.integers(3))):
                self.operation()
            self.line(f"with {tape.name}:")
            self.indent += 1
            self.active = tape
            self.line("pass")
            for _ in range(int(self.r.integers(1, 5))):
                self.operation()
        loss = None
        if self.chance(0.4):
            loss = self.name("l")
            self.line(f"{loss} = wp.zeros(1, dtype=wp.float64, requires_grad=True)")
            a = self.operand()
            self.line(f"wp.launch(k.total, {N}, [{a.text}], [{loss}])")
            self.reads(a)
        self.active = None
        self.indent -= 1
        tape.loss = loss

    def backward(self, tape: PendingTape) -> None:
        """Its backward pass, maybe a second one, and the gradients that are cleared between."""
        for again in (False, True):
            seeds = []
            wanted = [a for a in tape.outputs if a.wanted and a.kind == "scalar"]
            wanted = [a for a in wanted if a.root not in self.fickle]
            for a in wanted[-int(self.r.integers(1, 4)) :]:
                if not any(a.meets(s) for s in seeds) and a.contiguous:
                    seeds.append(a)
            loss = tape.loss
            if loss is not None and (self.chance(0.5) or not seeds):
                self.line(f"{tape.name}.backward({loss})")
            elif seeds:
                given = ", ".join(f"{a.text}: {self.cotangent(a)}" for a in seeds)
                self.line(f"{tape.name}.backward(grads={{{given}}})")
            else:
                return
            if again or not self.chance(0.25):
                if self.chance(0.3):
                    self.line(f"{tape.name}.zero()")
                return
            if self.chance(0.6):
                self.line(f"{tape.name}.zero()")

    def cotangent(self, a: Operand) -> str:
        values = f"{self.data(a.shape)}"
        return self.pick(
            [values, f"wp.array({values}, dtype=wp.float64)", f"wp.ones_like({a.text})"]
        )

    # ---- the whole

    def program(self) -> Program:
        self.root_scalar()
        for _ in range(int(self.r.integers(3, 7))):
            self.root()
        for _ in range(int(self.r.integers(1, 5))):
            self.view(self.pick(self.operands), True)
        for _ in range(int(self.r.integers(3))):
            a, b = self.operand(), self.operand()
            if not a.meets(b):
                name = self.name("s")
                self.line(f"{name} = k.Both()")
                self.line(f"{name}.a, {name}.b, {name}.k = {a.text}, {b.text}, {self.number()}")
                self.structs.append((name, a, b))
        if self.chance(0.3):
            a, b = self.operand(), self.operand()
            if not a.meets(b):
                name = self.name("c")
                self.line(
                    f"{name} = wp.launch(k.wave, {N}, [{a.text}, 0.7, {b.text}], record_cmd=True)"
                )
                self.commands.append((name, [a], [b]))
        # In a graph an array that a step makes is the same one each time, which a tape of all steps
        # would clear the gradient of: programs have one or the other there.
        self.lone = self.graphs and self.chance(0.5)
        for _ in range(int(self.r.integers(3)) if self.lone or not self.graphs else 0):
            self.tapes.append(self.name("t"))
            self.line(f"{self.tapes[-1]} = wp.Tape()")
        lasting = list(self.operands)
        if not self.graphs and self.chance(0.2):
            self.fickle.add(self.pick([o.root for o in lasting if o.wanted]))
        self.line("kept = []")
        self.line("def step():")
        self.indent += 1
        for _ in range(int(self.r.integers(1, 4))):
            for _ in range(int(self.r.integers(3))):
                self.operation()
            self.block()
            if self.chance(0.6):
                self.backward(self.pending.pop())
        for _ in range(int(self.r.integers(2))):
            self.operation()
        while self.pending:
            self.backward(self.pending.pop())
        shown = [o.text for o in self.operands if o not in lasting and o.text == o.root]
        if shown and not self.graphs:
            for text in shown:
                self.line(f"see({text})")
        self.indent -= 1
        self.line("def before(it):")
        self.indent += 1
        for o in lasting:
            if o.text != o.root:
                continue
            if o.kind != "pair" and self.chance(0.8):
                self.line(f"{o.text}.assign({self.data(o.at.shape, 'it')})")
            if o.root in self.fickle:
                self.line(f"{o.text}.requires_grad = it % 2 == 0")
            elif o.wanted and self.chance(0.8):
                self.line(f"{o.text}.grad.zero_()")
            elif o.wanted and o.kind == "scalar" and self.chance(0.5):
                values = self.data(o.at.shape, "it")
                self.line(f"{o.text}.grad = wp.array({values}, dtype=wp.float64)")
        self.line("pass")
        self.indent -= 1
        roots = ", ".join(o.text for o in lasting if o.text == o.root)
        steps = int(self.r.integers(2, 5))
        self.line(f"drive(step, before, [{roots}], {steps})")
        text = "def program(wp, k, data, see, drive):\n" + "\n".join(self.lines) + "\n"
        return Program(text, not self.graphs, self.aliased, steps)


def written(seed: int) -> Program:
    """The program of a seed."""
    return Writer(seed).program()

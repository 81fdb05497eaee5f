"""The arrays and views of a random host program, and what may be written while tapes wait."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tests.property.hosts.kernels import ROWS, N

Mask = dict[str, np.ndarray]


@dataclass(eq=False)
class Operand:
    """An array or a view. text: how it is called. at: which numbers of `root` it shows."""

    text: str
    root: str
    at: np.ndarray
    wanted: bool
    kind: str = "scalar"  # or "vector", "pair"
    contiguous: bool = True

    @property
    def shape(self) -> tuple[int, ...]:
        return self.at.shape if self.kind == "scalar" else self.at.shape[:-1]

    def meets(self, other: Operand) -> bool:
        return self.root == other.root and bool(np.intersect1d(self.at, other.at).size)


@dataclass
class PendingTape:
    """A tape that has not run backward for the last time."""

    name: str
    reads: Mask = field(default_factory=dict)  # what must stay until it has run backward
    outputs: list[Operand] = field(default_factory=list)
    loss: str | None = None


class Operands:
    """Writes the arrays of a program from a seed, and keeps what is known of them."""

    def __init__(self, seed: int) -> None:
        self.r = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.indent = 1
        self.count = self.drawn = 0
        self.operands: list[Operand] = []  # that any line may use
        self.structs: list[tuple[str, Operand, Operand]] = []
        self.commands: list[tuple[str, list[Operand], list[Operand]]] = []
        self.fickle: set[str] = set()  # arrays that require a gradient in every other iteration
        self.tapes: list[str] = []  # that outlive a step
        self.roots: dict[str, bool] = {}
        self.sizes: dict[str, int] = {}
        self.pending: list[PendingTape] = []
        self.active: PendingTape | None = None
        self.aliased = self.lone = False
        self.pure = self.chance(0.3)  # launches alone, as compiled code takes whole
        self.graphs = self.chance(0.3)

    # ---- text

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def chance(self, p: float) -> bool:
        return bool(self.r.random() < p)

    def pick(self, found: list, default: object = None):
        return found[self.r.integers(len(found))] if found else default

    def number(self) -> str:
        return repr(round(float(self.r.uniform(0.5, 1.5)), 3))

    def data(self, shape: tuple[int, ...], *it: str) -> str:
        """Numbers, the same each time that they are asked for, but of another iteration."""
        self.drawn += 1
        return f"data({', '.join([str(self.drawn), str(shape), *it])})"

    # ---- arrays

    def root(self, fresh: bool = False) -> Operand:
        """Makes an array; of those that a step makes, `empty` ones are filled at once."""
        shape, kind = self.pick(
            [((N,), "scalar")] * 4
            + [((2 * N,), "scalar"), ((ROWS, N), "scalar"), ((N, ROWS), "scalar")] * 2
            + [((N, 3), "vector"), ((N, 2), "pair")]
        )
        if fresh:
            shape, kind = (N,), "scalar"
        wanted = self.chance(0.8)
        dtype = {"scalar": "wp.float64", "vector": "wp.vec3d", "pair": "k.Pair"}[kind]
        name, size = self.name("f" if fresh else "a"), int(np.prod(shape))
        given = "" if not wanted else ", requires_grad=True"
        if kind == "pair" or self.chance(0.4):
            outer = shape if kind == "scalar" else shape[:-1]
            outer_text = str(outer[0]) if len(outer) == 1 else str(outer)
            self.line(f"{name} = wp.zeros({outer_text}, dtype={dtype}{given})")
        else:
            self.line(f"{name} = wp.array({self.data(shape)}, dtype={dtype}{given})")
        self.roots[name], self.sizes[name] = wanted, size
        out = Operand(name, name, np.arange(size).reshape(shape), wanted, kind)
        self.operands.append(out)
        return out

    def view(self, of: Operand, kept: bool) -> Operand | None:
        """A view of an array, with a name of its own or as it is written at its place."""
        at, forms = of.at, []
        if of.kind == "vector" and of.at.ndim == 2:
            forms.append((f"{of.text}.view(wp.float64)", at, "scalar"))
        if of.kind == "scalar":
            if at.ndim == 1 and len(at) > N:
                b = int(self.r.integers(len(at) - N + 1))
                forms += [(f"{of.text}[{b}:{b + N}]", at[b : b + N], "scalar")] * 3
                if len(at) == 2 * N:
                    s = int(self.r.integers(2))
                    forms.append((f"{of.text}[{s}::2]", at[s::2], "scalar"))
                    forms.append((f"{of.text}.reshape((2, {N}))", at.reshape(2, N), "scalar"))
            elif at.ndim == 1 and len(at) > 1:
                b = int(self.r.integers(1, len(at)))
                forms += [(f"{of.text}[:{b}]", at[:b], "scalar"),
                          (f"{of.text}[{b}:]", at[b:], "scalar"),
                          (f"{of.text}.flatten()", at.reshape(-1), "scalar")]  # fmt: skip
            elif at.ndim == 2:
                j = int(self.r.integers(at.shape[0]))
                forms += [(f"{of.text}[{j}]", at[j], "scalar")] * 4
                i = int(self.r.integers(at.shape[1]))
                forms += [(f"{of.text}[:, {i}]", at[:, i], "scalar"),
                          (f"{of.text}.transpose()", at.T, "scalar"),
                          (f"{of.text}[1:]", at[1:], "scalar")]  # fmt: skip
                if of.contiguous:
                    forms.append((f"{of.text}.flatten()", at.reshape(-1), "scalar"))
        text, at, kind = self.pick(forms, ("", None, ""))
        if at is None or (at.ndim == 1 and not of.contiguous and "reshape" in text):
            return None
        flat = at.reshape(-1)
        if not flat.size:
            return None
        contiguous = bool(np.array_equal(flat, np.arange(flat[0], flat[0] + flat.size)))
        if kept:
            name = self.name("v")
            self.line(f"{name} = {text}")
            text = name
        out = Operand(text, of.root, at, of.wanted, kind, contiguous)
        if kept:
            self.operands.append(out)
        return out

    def operand(self, shape: tuple[int, ...] = (N,), kind: str = "scalar") -> Operand:
        """One of a shape: a known one, a view made for it, or a new array."""
        for _ in range(6):
            of = self.pick(self.operands)
            for _ in range(int(self.r.integers(3))):
                of = self.view(of, False) or of
            if of.shape == shape and of.kind == kind:
                return of
        fits = [o for o in self.operands if o.shape == shape and o.kind == kind]
        return self.pick(fits)

    # ---- what may be written

    def is_free(self, a: Operand) -> bool:
        """Whether a write breaks no promise to a tape that has not run backward yet."""
        waiting = [t for t in self.pending if t is not self.active]
        return not any(t.reads.get(a.root, _none(a, self))[a.at].any() for t in waiting)

    def reads(self, *arrays: Operand) -> None:
        if self.active is not None:
            for a in arrays:
                self.active.reads.setdefault(a.root, _none(a, self))[a.at] = True

    def wrote(self, a: Operand, certain: bool) -> None:
        if self.active is not None:
            self.active.outputs.append(a)
            if certain and a.root in self.active.reads:
                self.active.reads[a.root][a.at] = False  # what was read is restored

    def root_scalar(self) -> None:
        """An array of the most usual shape, so that there is always one."""
        name = self.name("a")
        self.line(f"{name} = wp.array({self.data((N,))}, dtype=wp.float64, requires_grad=True)")
        self.roots[name], self.sizes[name] = True, N
        self.operands.append(Operand(name, name, np.arange(N), True))


def _none(a: Operand, writer: Operands) -> np.ndarray:
    return np.zeros(writer.sizes[a.root], np.bool_)

"""CUDA's forms of a kernel, as text: for any launch, and for those whose arrays lie apart.

Of these, no array that is written shares memory with another one, all are contiguous along their
last axis, and the launch has the axes that the kernel asks for. The compiler may then move accesses
as it likes; elements that are one thread's by their index are updated without atomics; and what all
threads add to one element is added up by each block first. Wide launches, in which each CUDA thread
runs some threads in a row, move several elements by one instruction.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.classes import dataclass
from engine.codegen.cstyle import Emitter
from engine.codegen.facts import LINEAR, facts_of, touched_arrays
from engine.codegen.layout import arg_offsets
from engine.codegen.loops import Loops, Place, Sums
from engine.codegen.spelling import identifier, local
from engine.ir import nodes as n

WIDE = 4  # threads in a row, as `native/cuda/apart.h` has it
SUFFIX = "_apart"


@dataclass(frozen=True)
class Apart:
    """What is known of launches whose arrays share no memory.

    useful: whether they have a form of their own. own: arrays of which each thread updates elements
    that are its alone. sums: arrays that threads only add to, at constant places. wide: whether the
    kernel is so light that CUDA threads run several threads at once.
    """

    useful: bool = False
    own: frozenset[str] = frozenset()
    sums: tuple[tuple[str, tuple[Place, ...]], ...] = ()
    wide: bool = False


UNKNOWN = Apart()


class Form:
    """The text around the threads that one CUDA thread runs, in one of the forms."""

    def __init__(self, e: Emitter, known: Apart = UNKNOWN, wide: bool = False) -> None:
        self.e = e
        self.apart = known.useful
        self.own = known.own
        self.wide = wide
        self.sums = Sums(e, Loops(sums=known.sums))
        self.facts = e.facts[id(e.fn)]
        self.name = "run_wide" if wide else "run_apart" if self.apart else "run"
        self.suffix = SUFFIX if self.apart else ""
        offsets = arg_offsets([p.type for p in e.fn.params])
        self.size = offsets[-1]
        self.params = list(zip(e.fn.params, offsets, strict=False))
        self.pointed = [p for p, _ in pointed(e.fn)] if self.apart else []

    def begin(self) -> list[str]:
        """The head, and the arguments."""
        head = ["const unsigned char* args", "const eng_launch& L", *self.pointers()]
        out = [f"static __device__ inline void {self.name}({', '.join(head)}) {{"]
        for p, at in self.params:
            kind = self.e.type(p.type)
            if not self.apart or p.name not in self.facts.touched:
                out.append(f"    const auto {local(p)} = eng::arg<{kind}>(args, {at});")
                continue
            kind = f"{kind[:-1]},true>"
            if p.name in self.own:
                kind = kind.replace("array_t", "own_t", 1)
            made = "wide" if self.wide else "flat"
            out.append(
                f"    const auto {local(p)} = eng::{made}<{kind}>(args, {at}, {_pointer(p)});"
            )
        if self.e.fn.watch:
            out.append(f"    const auto watch = eng::arg<eng::watch_t*>(args, {self.size});")
        sums = self.sums
        for p in sums.params:
            out += [f"    {line}" for line in sums.type(p)]
        return [*out, *(f"    {line}" for line in sums.own())]

    def arguments(self) -> list[str]:
        """What a thread gets."""
        sums = self.sums
        return [sums.argument(p) if p.name in sums.places else local(p) for p, _ in self.params]

    def coordinates(self) -> list[str]:
        """The coordinates of thread k, where the kernel asks for them."""
        facts = self.facts
        if not facts.axes:
            return []
        axes = sorted(facts.tids - {LINEAR})
        if self.wide:
            last = facts.axes - 1
            return [f"const int64_t k{d} = c[{d}]{' + j' if d == last else ''};" for d in axes]
        where = "place" if self.apart else "coordinates"
        out = [f"int64_t c[{facts.axes}];", f"eng::{where}<{facts.axes}>(L, k, c);"]
        return [*out, *(f"const int64_t k{d} = c[{d}];" for d in axes)]

    def loop(self, body: Sequence[str]) -> list[str]:
        """The loop over the threads of a CUDA thread."""
        if self.wide:
            return self._wide(body)
        # The last thread of an adjoint comes first, where there is an order.
        first, turns = (
            ("L.end - 1 - eng::lane()", "k >= L.begin; k -=") if self.e.fn.adjoints
            else ("L.begin + eng::lane()", "k < L.end; k +=")
        )  # fmt: skip
        return [
            "    const int64_t step = eng::lanes();",
            # Most run one thread: to know the number of turns would take a division.
            '    _Pragma("unroll 1")',
            f"    for (int64_t k = {first}; {turns} step) {{",
            *(f"        {line}" for line in body),
            "    }",
        ]

    def _wide(self, body: Sequence[str]) -> list[str]:
        """The same for threads in rows of `WIDE`: of one axis, the last row may be shorter."""
        axes = self.facts.axes
        thread = ["const int64_t k = from + j;"] * (LINEAR in self.facts.tids) + [*body]
        several = [
            "ENG_UNROLL",
            f"for (int64_t j = 0; j < eng::WIDE; ++j) {{ {' '.join(thread)} }}",
        ]
        rows = [f"int64_t c[{axes}];", f"eng::place<{axes}>(L, from, c);",
                f"c[{axes - 1}] &= ~int64_t(eng::WIDE - 1);"]  # fmt: skip
        if axes == 1:
            rest = f"for (int64_t j = 0; from + j < L.end; ++j) {{ {' '.join(thread)} }}"
            rows += ["if (from + eng::WIDE <= L.end) {", *(f"    {s}" for s in several),
                     "} else {", '    _Pragma("unroll 1")', f"    {rest}", "}"]  # fmt: skip
        else:
            rows += several
        return [
            "    const int64_t step = eng::WIDE * eng::lanes();",
            '    _Pragma("unroll 1")',
            "    for (int64_t from = eng::WIDE * eng::lane(); from < L.end; from += step) {",
            *(f"        {line}" for line in rows),
            "    }",
        ]

    def end(self) -> list[str]:
        """Adds to memory what the threads of each block added up."""
        out = []
        for p in self.sums.params:
            for k, place in enumerate(self.sums.places[p.name]):
                at = ", ".join(str(by) for _, by in place)
                out.append(f"    eng::gather({local(p)}.at({at}), own_{identifier(p.name)}[{k}]);")
        return out

    def call(self) -> str:
        """The call of the form by an entry point."""
        pointers = map(_pointer, self.pointed)
        return f"{self.name}({', '.join(['args.bytes', 'L', *pointers])})"

    def pointers(self) -> list[str]:
        """Parameters that point to arrays. Of entry points: nothing else would be believed."""
        return [f"unsigned char* __restrict__ {_pointer(p)}" for p in self.pointed]


def pointed(fn: n.Function) -> list[tuple[n.Var, int]]:
    """The arrays that come as pointers of their own, with their places among the arguments."""
    return touched_arrays(fn, facts_of(fn)[id(fn)])


def _pointer(p: n.Var) -> str:
    return f"d_{identifier(p.name)}"

"""CUDA's forms of a kernel as text: for any launch, and for launches with disjoint arrays.

Of these, no array that is written shares memory with another one, all are contiguous along their
last axis, and the launch has the axes that the kernel asks for. The compiler may then move accesses
as it likes; elements that are one thread's by their index are updated without atomics; and what all
threads add to one element is added up by each block first. Wide launches, in which each CUDA thread
runs some threads in a row, move several elements by one instruction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from engine.classes import dataclass
from engine.codegen.cstyle import Emitter
from engine.codegen.facts import LINEAR, facts_of, touched_arrays
from engine.codegen.layout import arg_offsets
from engine.codegen.loops import Loops, left_out_of
from engine.codegen.spelling import flag, identifier, local
from engine.codegen.sums import Place, Sums, coordinate
from engine.ir import nodes as n
from engine.lang.types import ArrayType

WIDE = 4  # threads in a row, as `native/cuda/apart.h` has it
SUFFIX = "_apart"


# For each dimension the axis of the grid, or -1, and the least and the most that is added to the
# coordinate.
Box = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Around:
    """Where threads add to an array.

    box: all of it. places: what is added to the coordinates of the dimensions before the last, with
    the least and the most that is added to the last one there.
    """

    box: Box
    places: tuple[tuple[tuple[int, ...], int, int], ...]


@dataclass(frozen=True)
class Apart:
    """What is known of launches whose arrays share no memory.

    useful: whether they have a form of their own. own: arrays of which each thread updates elements
    that are its alone. sums: arrays that threads only add to, at constant places. wide: whether the
    kernel is so light that CUDA threads run several threads at once. rows: arrays of which each
    thread touches one element then, that of its coordinate along the last axis; for each dimension
    before, the axis of the grid or -1, and what is added to the coordinate. around: arrays of
    floats to which threads only add, near their coordinates.
    """

    useful: bool = False
    own: frozenset[str] = frozenset()
    sums: tuple[tuple[str, tuple[Place, ...]], ...] = ()
    wide: bool = False
    rows: tuple[tuple[str, Place], ...] = ()
    around: tuple[tuple[str, Around], ...] = ()


UNKNOWN = Apart()
_NAMES = {d: f"c[{d}]" for d in range(4)}  # what rows call the coordinates
# Such launches have all threads of a grid, fewer than 2^31 - 2^16.
_COUNTED = "    const uint32_t end = uint32_t(L.end), step = uint32_t(eng::lanes());"


class Form:
    """The text around the threads that one CUDA thread runs, in one of the forms."""

    def __init__(self, e: Emitter, known: Apart = UNKNOWN, wide: bool = False) -> None:
        self.e = e
        self.apart = known.useful
        self.own = known.own
        self.wide = wide
        self.rows = dict(known.rows) if wide else {}
        self.around = dict(known.around) if wide else {}
        self.within = [] if e.guards is None else [flag(wide)]
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
        own = [sums.argument(p) if p.name in sums.places else local(p) for p, _ in self.params]
        return [*own, *self.within]

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
        down = bool(self.e.fn.adjoints)
        # Most run one thread: to know the number of turns would take a division.
        once = '    _Pragma("unroll 1")'
        if self.apart:
            head = [
                _COUNTED, once, "    for (uint32_t t = eng::lane(); t < end; t += step) {",
                f"        const int64_t k = {'end - 1 - t' if down else 't'};",
            ]  # fmt: skip
        else:
            first, turns = (
                ("L.end - 1 - eng::lane()", "k >= L.begin; k -=") if down
                else ("L.begin + eng::lane()", "k < L.end; k +=")
            )  # fmt: skip
            head = [
                "    const int64_t step = eng::lanes();", once,
                f"    for (int64_t k = {first}; {turns} step) {{",
            ]  # fmt: skip
        return [*head, *(f"        {line}" for line in body), "    }"]

    def _at_once(self) -> list[str]:
        """Threads in a row, which have their elements of some arrays in registers."""
        last = f"c[{self.facts.axes - 1}]"
        before, after = list[str](), list[str]()
        args = self.arguments()
        if self.around:
            before.append(f"const eng::spot_t spot{{t, {last}, L.dim[{self.facts.axes - 1}]}};")
        for k, (p, _) in enumerate(self.params):
            numbers, row = f"own_{identifier(p.name)}", f"row_{identifier(p.name)}"
            if p.name in self.around:
                added = _Added(p, self.around[p.name], last)
                before += added.begin(numbers, row)
                after += added.end(numbers)
            elif p.name in self.rows:
                assert isinstance(p.type, ArrayType)
                outer = [coordinate(axis, by, _NAMES) for axis, by in self.rows[p.name]]
                element = f"{local(p)}.at({', '.join([*outer, last])})"
                before += [
                    f"{self.e.type(p.type.element)} {numbers}[eng::WIDE];",
                    f"eng::read_row({numbers}, {element});",
                    f"const auto {row} = eng::row_of({local(p)}, {numbers}, {last});",
                ]
                if p.name in self.facts.written:
                    after.append(f"eng::write_row({element}, {numbers});")
            else:
                continue
            args[k] = row
        call = f"{self.e.call(self.e.fn, args)};"
        thread = " ".join([*self._linear(), *self.coordinates(), call])
        loop = f"for (int64_t j = 0; j < eng::WIDE; ++j) {{ {thread} }}"
        return [*before, "ENG_UNROLL", loop, *after]

    def _linear(self) -> list[str]:
        """The linear index of a thread of a row, where the kernel asks for it."""
        return ["const int64_t k = from + j;"] * (LINEAR in self.facts.tids)

    def _wide(self, body: Sequence[str]) -> list[str]:
        """The same for threads in rows of `WIDE`: of one axis, the last row may be shorter.

        So are rows with threads that a kernel's guards leave out.
        """
        axes = self.facts.axes
        thread = [*self._linear(), *body]
        several = self._at_once()
        rows = [f"int64_t c[{axes}];", f"eng::place<{axes}>(L, from, c);",
                f"c[{axes - 1}] &= ~int64_t(eng::WIDE - 1);"]  # fmt: skip
        if self.e.guards is not None or axes == 1:
            last = f"c[{axes - 1}]"
            ends = f"int64_t first = {last}, stop = first + eng::WIDE;"
            rows += [ends, *["if (stop > end) stop = end;"] * (axes == 1)]
            if self.e.guards is not None:
                rows += [f"const int64_t k{d} = c[{d}];" for d in range(axes - 1)]
                rows += left_out_of(self.e, self.e.guards)
            begin, some = f"int64_t j = first - {last}", " ".join(thread)
            rows += ["if (stop - first == eng::WIDE) {", *(f"    {s}" for s in several),
                     "} else {", '    _Pragma("unroll 1")',
                     f"    for ({begin}; j < stop - {last}; ++j) {{ {some} }}", "}"]  # fmt: skip
        else:
            rows += several
        return [
            _COUNTED,
            '    _Pragma("unroll 1")',
            "    for (uint32_t t = eng::WIDE * eng::lane(); t < end; t += eng::WIDE * step) {",
            "        const int64_t from = t;",
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


class _Added:
    """What threads in a row add to an array around them, as text."""

    def __init__(self, p: n.Var, around: Around, last: str) -> None:
        self.p = p
        self.around = around
        self.last = last
        *_, (_, self.low, high) = around.box
        self.sizes = [1 + most - least for _, least, most in around.box[:-1]]
        self.sizes.append(WIDE + high - self.low)

    def begin(self, numbers: str, row: str) -> list[str]:
        """Numbers that nothing was added to, and what the kernel takes for the array."""
        *outer, _ = self.around.box
        first = [coordinate(axis, low, _NAMES) for axis, low, _ in outer]
        first.append(f"{self.last} + ({self.low})")
        sizes = ", ".join(map(str, [math.prod(self.sizes), *self.sizes[1:]]))
        return [
            f"eng::around_t<float, {sizes}> {numbers};",
            f"const auto {row} = {numbers}.of({local(self.p)}, {', '.join(first)});",
        ]

    def end(self, numbers: str) -> list[str]:
        """Adds them to memory."""
        out = []
        *outer, _ = self.around.box
        for places, low, high in self.around.places:
            at, begin = list[str](), 0
            for by, (axis, least, _), size in zip(places, outer, self.sizes, strict=False):
                at.append(coordinate(axis, by, _NAMES))
                begin = begin * size + by - least
            begin = begin * self.sizes[-1] + low - self.low
            element = f"{local(self.p)}.at({', '.join([*at, self.last])})"
            given = f"{element}, {numbers}.numbers + {begin}, spot"
            out.append(f"eng::add_row<{low}, {high}>({given});")
        return out


def pointed(fn: n.Function) -> list[tuple[n.Var, int]]:
    """The arrays that come as pointers of their own, with their places among the arguments."""
    return touched_arrays(fn, facts_of(fn)[id(fn)])


def _pointer(p: n.Var) -> str:
    return f"d_{identifier(p.name)}"

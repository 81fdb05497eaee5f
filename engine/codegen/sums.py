"""Sums of many threads on the CPU, as text: groups of threads have private partial sums.

Where threads add to elements that are the same for the launch, or for a row of the grid, `STEP`
threads in a row have a number each, for every place. Compilers keep these in registers where
threads do little, which then go by steps of just so many, and ask for memory to come. After some
steps the numbers are added to others, which are what is added up as a tree in the end: so no number
grows by many small ones. For elements around the threads, more of them have numbers, in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from engine.codegen.cstyle import Emitter
from engine.codegen.rows import operations
from engine.codegen.spelling import identifier, local
from engine.ir import nodes as n
from engine.lang.ctypes_ import ctype
from engine.lang.types import ArrayType

if TYPE_CHECKING:
    from engine.codegen.loops import Loops

# An element by the thread: for each dimension an axis of the grid, -1 for none, and a number that
# is added to the thread's coordinate along it.
Place = tuple[tuple[int, int], ...]

STEP = 64  # threads with numbers of their own, for elements that are the same for all threads
STEPS = 64  # after which these are added to others
LITTLE = 128  # operations of a thread that is there twice, for whole steps and for the rest


def even(places: Mapping[str, tuple[Place, ...]], axes: int) -> bool:
    """Whether all elements are the same for whole rows of the grid."""
    last = axes - 1
    return all(axis < last for some in places.values() for place in some for axis, _ in place)


class Sums:
    """Text about the arrays of which threads have lanes."""

    def __init__(self, e: Emitter, known: Loops) -> None:
        self.e, self.known = e, known
        self.places = dict(known.sums)
        self.axes = e.facts[id(e.fn)].axes
        self.even = even(self.places, self.axes)
        self.lanes = STEP if self.even else known.lanes
        self.params = [p for p in e.fn.params if p.name in self.places]

    def before(self) -> list[str]:
        """Memory for the lanes, and what stands for the arrays."""
        if not self.params:
            return []
        all_threads = any(self.of(p, "launch") for p in self.params)
        most = f"const int64_t most = eng::least({self.lanes}, end - begin);"
        out = [most] if all_threads else []
        for p in self.params:
            out += self.type(p)
            t, size = _element(p), len(self.places[p.name]) * self.lanes
            out.append(f"alignas(64) {t} {_lane(p)}[{size}];")
            if self.even:
                out.append(f"alignas(64) {t} {_few(p)}[{size}];")
            for at, _ in self.of(p, "launch"):
                if self.even:
                    out += [f"eng::clear({x} + {at}, {STEP});" for x in (_lane(p), _few(p))]
                else:
                    out.append(f"eng::clear({_lane(p)} + {at}, most);")
        return [*out, "int64_t held = 0;"] if self.even and all_threads else out

    def type(self, p: n.Var) -> list[str]:
        """What a thread gets for an array: numbers of its own, told apart by the index."""
        places = self.places[p.name]
        members = [f"int64_t k{d};" for d in self.used(p)]
        out = [f"struct sum_{identifier(p.name)} {{"]
        out.append("    " + " ".join(["const int64_t* shape;", f"{_element(p)}* own;", *members]))
        given = ", ".join(f"int64_t i{d}" for d in range(len(places[0])))
        out.append(f"    ENG_MEMBER {_element(p)}& at({given}) const {{")
        for k, place in enumerate(places[:-1]):
            test = " && ".join(f"i{d} == {coordinate(a, by)}" for d, (a, by) in enumerate(place))
            out.append(f"        if ({test}) return own[{k}];")
        return [*out, f"        return own[{len(places) - 1}];", "    }", "};"]

    def used(self, p: n.Var) -> list[int]:
        """The axes that places name; with one place, no index is looked at."""
        places = self.places[p.name]
        found = {a for place in places for a, _ in place if a >= 0}
        return sorted(found) if len(places) > 1 else []

    def argument(self, p: n.Var) -> str:
        parts = [f"{local(p)}.shape", _own(p)]
        parts += [f"k{d}" for d in self.used(p)]
        return f"sum_{identifier(p.name)}{{{', '.join(parts)}}}"

    def own(self) -> list[str]:
        """The numbers of a thread, which compilers keep in registers."""
        out = []
        for p in self.params:
            blank = f"eng::sum_t<{_element(p)}>::blank()"
            blanks = ", ".join([blank] * len(self.places[p.name]))
            out.append(f"{_element(p)} {_own(p)}[] = {{{blanks}}};")
        return out

    def kept(self) -> list[str]:
        """Puts the numbers of a thread into its lane."""
        out = []
        for p in self.params:
            for k, place in enumerate(self.places[p.name]):
                name = _few(p) if self.even else _lane(p)
                lane, own = f"{name}[{k * self.lanes} + j]", f"{_own(p)}[{k}]"
                alone = self.span(place) == "block"
                out.append(f"{lane} = {own};" if alone else f"eng::atomic_add({lane}, {own});")
        return out

    def span(self, place: Place) -> str:
        """Whether a place is that of a launch, a row of it, or a block of threads."""
        most = max(axis for axis, _ in place)
        return "launch" if most < 0 else "block" if most == self.axes - 1 else "row"

    def of(self, p: n.Var, span: str) -> list[tuple[int, Place]]:
        """Places of a span, with the offset of their lanes."""
        pairs = enumerate(self.places[p.name])
        return [(k * self.lanes, place) for k, place in pairs if self.span(place) == span]

    def blocks(self, x: str, call: str, ends: list[str], down: bool) -> list[str]:
        """The loop over the threads of a row, as many at once as there are lanes."""
        if self.even:
            return self.steps(x, call, ends, down)
        row = [(p, at, place) for p in self.params for at, place in self.of(p, "row")]
        out = [f"const int64_t wide = eng::least({self.lanes}, n);"] if row else []
        out += [f"eng::clear({_lane(p)} + {at}, wide);" for p, at, _ in row]
        if down:
            out.append("for (int64_t at = stop, some; at > first; at -= some) {")
            some, start = "at - first", "at - some + 1"
            head = "int64_t j = some - 1; j >= 0; --j"
        else:
            out.append("for (int64_t at = first, some; at < stop; at += some) {")
            some, start = "stop - at", "at"
            head = "int64_t j = 0; j < some; ++j"
        body = [f"some = eng::least({self.lanes}, {some});", f"const int64_t from = {start};"]
        block = [(p, at, place) for p in self.params for at, place in self.of(p, "block")]
        if ends:  # some threads may not come to their end
            body += [f"eng::clear({_lane(p)} + {at}, some);" for p, at, _ in block]
        body.append(f"for ({head}) {{ const int64_t {x} = from + j; {call} }}")
        for p, at, place in block:
            element = _at(p, place, {self.axes - 1: "from"})
            body.append(f"eng::spread({element}, {_lane(p)} + {at}, some);")
        out += [*(f"    {line}" for line in (*body, *ends)), "}"]
        out += [f"eng::gather({_at(p, place)}, {_lane(p)} + {at}, wide);" for p, at, place in row]
        return out

    def steps(self, x: str, call: str, ends: list[str], down: bool) -> list[str]:
        """The same, where all elements are those of the launch or of the row."""
        run = f"const int64_t {x} = from + j; {call}"
        if down:
            head = "for (int64_t at = stop, some; at > first; at -= some) {"
            left, till = "at - first", "const int64_t till = at - some;"
            steps = [
                "for (int64_t to = at, few; to > till; to -= few) {",
                f"    few = eng::least({STEP}, to - till);",
                "    const int64_t from = to - few + 1;",
                f"    for (int64_t j = few - 1; j >= 0; --j) {{ {run} }}",
                *(f"    {line}" for line in ends),
                "}",
            ]
        else:
            head = "for (int64_t at = first, some; at < stop; at += some) {"
            left, till = "stop - at", "const int64_t till = at + some;"
            if ends or not is_light(self.e):
                steps = [
                    "for (int64_t from = at, few; from < till; from += few) {",
                    f"    few = eng::least({STEP}, till - from);",
                    f"    for (int64_t j = 0; j < few; ++j) {{ {run} }}",
                    *(f"    {line}" for line in ends),
                    "}",
                ]
            else:
                steps = [
                    "int64_t from = at;",
                    f"for (; till - from >= {STEP}; from += {STEP}) {{",
                    *(f"    {line}" for line in self.asked()),
                    f"    for (int64_t j = 0; j < {STEP}; ++j) {{ {run} }}",
                    "}",
                    f"for (int64_t j = 0; j < till - from; ++j) {{ ENG_SCALAR; {run} }}",
                ]
        body = [f"some = eng::least({STEP * STEPS}, {left});", till, *steps]
        if fold := self.fold("launch"):
            body.append(f"held += (some + {STEP - 1}) / {STEP};")
            body.append(f"if (held >= {STEPS}) {{ {' '.join(fold)} held = 0; }}")
        row = [(p, at, place) for p in self.params for at, place in self.of(p, "row")]
        out, after = list[str](), list[str]()
        if row:
            out = [f"const int64_t wide = eng::least({STEP}, n);",
                   f"const bool is_long = n > {STEP * STEPS};"]  # fmt: skip
            body.append(f"if (is_long) {{ {' '.join(self.fold('row'))} }}")
        for p, at, place in row:
            few, lane = f"{_few(p)} + {at}", f"{_lane(p)} + {at}"
            out.append(f"eng::clear({few}, wide);")
            out.append(f"if (is_long) eng::clear({lane}, wide);")
            after.append(f"eng::gather({_at(p, place)}, is_long ? {lane} : {few}, wide);")
        return [*out, head, *(f"    {line}" for line in (*body, *ends)), "}", *after]

    def fold(self, span: str) -> list[str]:
        """Adds the numbers of threads to those of more of them."""
        return [
            f"eng::fold({_lane(p)} + {at}, {_few(p)} + {at}, {STEP});"
            for p in self.params for at, _ in self.of(p, span)
        ]  # fmt: skip

    def asked(self) -> list[str]:
        """Asks for what steps to come read of a single array: of several, enough is on its way."""
        facts = self.e.facts[id(self.e.fn)]
        last, loans = self.axes - 1, dict(self.known.loans)
        boxes = [(p, loans.get(p.name, ())) for p in self.e.fn.params if p.name in facts.touched]
        along = [(p, box) for p, box in boxes if box and box[-1][0] == last]
        if len(along) != 1 or along[0][0].name in facts.written:
            return []
        ((p, box),) = along
        place = tuple((axis, by) for axis, by, _ in box)
        return [f"eng::ask_on<{STEP}>({_at(p, place, {last: 'from'})});"]

    def after(self) -> list[str]:
        gathers = [
            f"eng::gather({_at(p, place)}, {_lane(p)} + {at}, most);"
            for p in self.params for at, place in self.of(p, "launch")
        ]  # fmt: skip
        return [*(self.fold("launch") if self.even else []), *gathers]


def is_light(e: Emitter) -> bool:
    """Whether threads do so little that it may be there twice."""
    heavy = (n.For, n.While, n.Call)
    if any(isinstance(s, heavy) for s in n.walk(e.fn.body)):
        return False
    return operations(e.fn.body) <= LITTLE


def _element(p: n.Var) -> str:
    assert isinstance(p.type, ArrayType)
    return ctype(p.type.element)


def _own(p: n.Var) -> str:
    return f"own_{identifier(p.name)}"


def _lane(p: n.Var) -> str:
    return f"lane_{identifier(p.name)}"


def _few(p: n.Var) -> str:
    return f"few_{identifier(p.name)}"


def coordinate(axis: int, by: int, names: Mapping[int, str] | None = None) -> str:
    """A thread's coordinate along an axis (of -1: 0), and a number added to it, as text."""
    if axis < 0:
        return str(by)
    name = (names or {}).get(axis, f"k{axis}")
    return name if by == 0 else f"{name} {'+' if by > 0 else '-'} {abs(by)}"


def _at(p: n.Var, place: Place, names: dict[int, str] | None = None) -> str:
    """The element at a place."""
    return f"{local(p)}.at({', '.join(coordinate(a, by, names) for a, by in place)})"

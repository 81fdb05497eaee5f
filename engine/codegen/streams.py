"""Arrays that threads write without reading memory first: see `native/cpu/far.h`.

A processor reads the line of memory that it writes a part of. Where all of an array is written and
little is computed, and arrays are larger than any cache, that is a quarter of the time or more. So
blocks of threads write to memory that stays near, which then goes out whole lines at a time. What
they read of rows to come is asked for before, which processors foresee along a row alone.
"""

from __future__ import annotations

from engine.classes import dataclass
from engine.codegen.cstyle import Emitter
from engine.codegen.guards import straight
from engine.codegen.loops import Loops
from engine.codegen.rows import operations
from engine.codegen.spelling import identifier, local
from engine.codegen.sums import coordinate
from engine.ir import nodes as n
from engine.lang.ctypes_ import ctype
from engine.lang.types import ArrayType, ValueType, is_float, scalar_of

HEADER = "far.h"
# Operations of a thread for each word that it writes, beyond which arithmetic takes the time.
LITTLE = 16
# Bytes of a launch's arrays, and threads of a row of the grid, with less of which lines go out only
# where rows are whole lines; tests change them.
VAST, ROW = 64 << 20, 256
# Threads of a block, a multiple of `_LINE`, and bytes that they may write: on the stack.
_BLOCK, _NEAR, _LINE = 256, 1 << 12, 16
# Operations of indices, of which there are few.
_OF_INDICES = frozenset(
    ["add", "cast", "copy", "eq", "ge", "gt", "land", "le", "lnot", "lor", "lt", "max", "min",
     "mul", "ne", "shape", "sub", "tid", "wrap_index"]
)  # fmt: skip

_Box = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Streams:
    """What each thread writes one element of, whatever happens; and what it reads of other rows.

    Both with the elements: for each dimension an axis of the grid, and the least and the most that
    is added to the thread's coordinate. axes: of the grid.
    """

    written: tuple[tuple[n.Var, _Box], ...]
    asked: tuple[tuple[n.Var, _Box], ...]
    axes: int

    def names(self) -> frozenset[str]:
        return frozenset(p.name for p, _ in self.written)

    @property
    def block(self) -> int:
        """Threads whose results are near at once."""
        return min(_BLOCK, _NEAR // self.each // _LINE * _LINE)

    @property
    def each(self) -> int:
        """Bytes that a thread writes."""
        return sum(_element(p).size for p, _ in self.written)

    def before(self) -> list[str]:
        """Memory for a block, and what threads get for the arrays: an element, and the shape."""
        out = []
        for p, box in self.written:
            t, given = ctype(_element(p)), ", ".join(["int64_t"] * len(box))
            out += [
                f"struct near_{identifier(p.name)} {{",
                f"    const int64_t* shape; {t}* own;",
                f"    ENG_MEMBER {t}& at({given}) const {{ return *own; }}",
                "};",
                f"alignas(64) {t} {_near(p)}[{self.block}];",
            ]
        return out

    def argument(self, p: n.Var) -> str:
        return f"near_{identifier(p.name)}{{{local(p)}.shape, {_to(p)} + j}}"

    def row(self, call: str) -> list[str]:
        """The loop over the threads of a row, which run by a call."""
        first = self._at(*self.written[0])
        body = [
            "const bool far = eng::hidden(vast);",
            f"some = eng::least(far ? eng::to_lines({first}, {self.block}) : {self.block},"
            " stop - at);",
        ]
        for p, box in self.written:
            body.append(f"auto* const {_to(p)} = far ? {_near(p)} : &{self._at(p, box)};")
        body += [f"if (far) eng::ask_row({self._next(p, box)}, some);" for p, box in self.asked]
        x = f"k{self.axes - 1}"
        body.append(f"for (int64_t j = 0; j < some; ++j) {{ const int64_t {x} = at + j; {call} }}")
        body += [
            f"if (far) eng::stream_row({self._at(p, box)}, {_near(p)}, some);"
            for p, box in self.written
        ]
        head = "for (int64_t at = first, some; at < stop; at += some) {"
        return [head, *(f"    {line}" for line in body), "}"]

    def _at(self, p: n.Var, box: _Box) -> str:
        """The element of the first thread of a block."""
        names = {self.axes - 1: "at"}
        return f"{local(p)}.at({', '.join(coordinate(a, by, names) for a, by, _ in box)})"

    def _next(self, p: n.Var, box: _Box) -> str:
        """The element that the first thread's next row reads first, of the rows farthest on."""
        by = [high for _, _, high in box[:-2]] + [box[-2][2] + 1, box[-1][1]]
        return self._at(p, tuple((a, d, d) for (a, _, _), d in zip(box, by, strict=True)))


def streams(e: Emitter, known: Loops) -> Streams | None:
    """What a kernel's threads write and read so; None where it is not to be streamed."""
    fn, facts = e.fn, e.facts[id(e.fn)]
    loans, last = dict(known.loans), facts.axes - 1
    if fn.adjoints or facts.context or not facts.axes or known.sums:
        return None
    if any(isinstance(s, (n.For, n.While)) for s in n.walk(fn.body)):
        return None
    run = straight(fn.body, e.guards)
    if run is None:  # branches are left, of something else
        run = [*fn.body]
    # Who returned would not have written; guards are passed.
    if any(isinstance(s, n.Return) for s in n.walk(fn.body if e.guards is None else tuple(run))):
        return None
    written, asked = list[tuple[n.Var, _Box]](), list[tuple[n.Var, _Box]]()
    for p in fn.params:
        if not isinstance(p.type, ArrayType) or p.name not in facts.touched:
            continue
        box = loans.get(p.name, ())
        along = bool(box) and box[-1][0] == last
        if p.name in facts.written:
            if not along or not _is_written(fn, run, p):
                return None
            written.append((p, box))
        elif along and len(box) > 1 and box[-2][0] == last - 1 >= 0 and _several(box):
            asked.append((p, box))
    found = Streams(tuple(written), tuple(asked), facts.axes)
    if not written or found.each * _LINE > _NEAR or 4 * _work(run) > LITTLE * found.each:
        return None
    return found


def _several(box: _Box) -> bool:
    """Whether a thread reads of several rows."""
    return any(low < high for _, low, high in box[:-1])


def _is_written(fn: n.Function, run: list[n.Stmt], array: n.Var) -> bool:
    """Whether a thread writes to an array by one statement, on every way, and does nothing else."""
    touches = [
        s for s in n.walk(fn.body)
        if (array in n.uses_of(s) or getattr(s, "array", 0) == array)
        and not (isinstance(s, n.Let) and s.op == "shape")
    ]  # fmt: skip
    stores = [s for s in run if isinstance(s, n.Store) and s.array == array and not s.path]
    return len(stores) == 1 and touches == stores


def _work(run: list[n.Stmt]) -> int:
    """About how many operations a thread takes, but for what is seen to be of indices."""
    return operations(tuple(s for s in run if not _is_of_indices(s)), calls=True)


def _is_of_indices(s: n.Stmt) -> bool:
    if not isinstance(s, n.Let):
        return False
    t = s.dst.type
    return isinstance(t, ArrayType) or (s.op in _OF_INDICES and not is_float(scalar_of(t)))


def _element(p: n.Var) -> ValueType:
    assert isinstance(p.type, ArrayType)
    return p.type.element


def _near(p: n.Var) -> str:
    return f"few_{identifier(p.name)}"


def _to(p: n.Var) -> str:
    return f"to_{identifier(p.name)}"

"""Faults of watched launches: data, and the errors that report them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from engine.classes import dataclass
from engine.diagnostics import Diagnostic, Span

if TYPE_CHECKING:
    from engine.compile.pipeline import Variants

Kind = Literal["outside", "race", "mixed", "same", "unwatched", "unseen"]


@dataclass(frozen=True, slots=True)
class Fault:
    """An access outside of something, or two threads that meet in one element.

    kind: `outside`; `race`, of which one side changes what is there; `mixed`, one side is an
    atomic minimum or maximum and the other only reads; `same`, what is stored is what was there
    already, for which the program gives no reason; `unwatched`, there was no memory to look for
    races; `unseen`, it was on a GPU, and the CPU, which looks for races, cannot compile the kernel.
    kernel: its key. span: of the access. form: what ran, `forward` for the kernel itself.
    access: `load`, `store` or `atomic`; `component` of a vector, matrix or local array, `view`.
    name: of the array or variable, empty where it has none. thread: its coordinates. index,
    shape: of the element. count: such accesses in the launch; threads of an adjoint that a GPU runs
    again, for want of memory for what they save, count twice.
    other, other_span, other_access: of a race, the thread that it meets and what that did.
    site: where the launch was called.
    """

    kind: Kind
    kernel: str
    span: Span
    form: str
    access: str
    name: str
    thread: tuple[int, ...]
    index: tuple[int, ...]
    shape: tuple[int, ...]
    count: int
    other: tuple[int, ...] = ()
    other_span: Span | None = None
    other_access: str = ""
    site: Span | None = None

    @property
    def element(self) -> str:
        """As a program names it: `x[3, 1]`."""
        return f"{self.name or 'it'}[{', '.join(map(str, self.index))}]"

    @property
    def at(self) -> str:
        """The thread as a program sees it: a number, or several in parentheses."""
        return _coordinates(self.thread)

    @property
    def other_at(self) -> str:
        """The other thread of a race."""
        return _coordinates(self.other)

    @property
    def words(self) -> str:
        """What happened outside of something, to be put behind the name of the kernel."""
        whole = f"of `{self.name}`" if self.name else "of a vector or matrix"
        if self.access == "component":
            index = ", ".join(map(str, self.index))
            size = " x ".join(map(str, self.shape))
            return f"names component [{index}] {whole}, which has {size}"
        if self.access == "view":
            whole = f"of `{self.name}`" if self.name else "of an array"
            return f"names place {self.index[0]} of a part {whole}, which has {self.shape[0]}"
        does = _DOES[self.access]
        if not any(self.shape):
            return f"{does} `{self.element}`, but `{self.name}` is None or empty"
        return f"{does} `{self.element}` outside of its shape {self.shape}"


OnFault = Callable[[Fault], None]


_DOES = {"load": "reads", "store": "writes", "atomic": "updates"}


@contextmanager
def any_order(variants: Variants) -> Iterator[None]:
    """Where those who watch were told of a race in a kernel, its adjoints run on a GPU, too."""
    from engine.compile.backend import raced  # late: whoever reads faults needs no NumPy
    from engine.compile.watching import watched

    token = raced.set(watched(variants, "races").raced)
    try:
        yield
    finally:
        raced.reset(token)


def _coordinates(thread: tuple[int, ...]) -> str:
    return str(thread[0]) if len(thread) == 1 else str(thread)


def diagnostic(fault: Fault) -> Diagnostic:
    """An E211 for an access outside of something."""
    notes = [f"in thread {fault.at}"]
    if fault.count > 1:
        notes.append(f"{fault.count - 1} more such accesses in the same launch")
    if fault.site is not None:
        notes.append(f"launched at {fault.site}")
    return Diagnostic(
        "E211", f"kernel {fault.kernel!r} {fault.words}", fault.span,
        "the launch has run to its end: such loads gave zero, and such stores nothing",
        tuple(notes),
    )  # fmt: skip

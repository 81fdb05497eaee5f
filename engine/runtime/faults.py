"""What watched launches did that no program should: data, and the errors that tell it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.diagnostics import Diagnostic, Span

Kind = Literal["outside", "race", "mixed", "same", "unwatched"]


@dataclass(frozen=True, slots=True)
class Fault:
    """An access outside of something, or two threads that meet in one element.

    kind: `outside`; `race`, of which one side stores something else than was there; `mixed`,
    one side updates atomically and the other only reads; `same`, what is stored is what was
    there already, for which the program gives no reason; `unwatched`, there was no memory to
    look for races.
    kernel: its key. span: of the access. form: what ran, `forward` for the kernel itself.
    access: `load`, `store` or `atomic`; `component` of a vector, matrix or local array, `view`.
    name: of the array or variable, empty where it has none. thread: its coordinates. index,
    shape: of the element. count: such accesses in the launch.
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


def element(fault: Fault) -> str:
    """The element as a program names it: `x[3, 1]`."""
    return f"{fault.name or 'it'}[{', '.join(map(str, fault.index))}]"


def coordinates(thread: tuple[int, ...]) -> str:
    """A thread as a program sees it: a number, or several in parentheses."""
    return str(thread[0]) if len(thread) == 1 else str(thread)


_DOES = {
    "load": "reads", "store": "writes", "atomic": "updates", "component": "names", "view": "names",
}  # fmt: skip


def words(fault: Fault) -> str:
    """What happened, after the name of the kernel."""
    what = element(fault)
    if fault.access == "component":
        kind = "component" if len(fault.shape) < 2 else "entry"
        of = f"of `{fault.name}`" if fault.name else "of a vector or matrix"
        at = ", ".join(map(str, fault.index))
        return f"names {kind} [{at}] {of}, which has {_sizes(fault.shape)}"
    if fault.access == "view":
        of = f"of `{fault.name}`" if fault.name else "of an array"
        return f"names place {fault.index[0]} of a view {of}, which has {_sizes(fault.shape)}"
    if not fault.shape or fault.shape == (0,) * len(fault.shape):
        return f"{_DOES[fault.access]} `{what}`, but `{fault.name}` is None or empty"
    return f"{_DOES[fault.access]} `{what}` outside of its shape {_tuple(fault.shape)}"


def _sizes(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def _tuple(shape: tuple[int, ...]) -> str:
    return str(tuple(shape))


def diagnostic(fault: Fault) -> Diagnostic:
    """An E211 for an access outside of something."""
    notes = [f"in thread {coordinates(fault.thread)}"]
    if fault.count > 1:
        notes.append(f"{fault.count - 1} more such accesses in the same launch")
    if fault.site is not None:
        notes.append(f"launched at {fault.site}")
    return Diagnostic(
        "E211", f"kernel {fault.kernel!r} {words(fault)}", fault.span,
        "the launch has run to its end: such loads gave zero, and such stores nothing",
        tuple(notes),
    )  # fmt: skip

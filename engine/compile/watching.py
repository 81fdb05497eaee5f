"""Compiles watched kernels, and proves that a launch needs no watching."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from engine import ad
from engine.ad.threads.bounds import Bounds
from engine.cached import cached_property
from engine.compile.backend import Entry
from engine.compile.forms import FORMS, Form, Names
from engine.compile.pipeline import Key, Variants
from engine.compile.threads import Placed, Threads
from engine.ir.nodes import Function, Let, callees, walk
from engine.ir.sites import Place, indexes_unseen, places
from engine.lang.types import ArrayType, is_float

_KEPT = 256  # launches that are remembered


class Watched(Variants):
    """All forms of a kernel, watched. What is known of the kernel's own forms holds for them."""

    def __init__(self, own: Variants, what: Literal["bounds", "races"]) -> None:
        self.__dict__.update(own.__dict__)
        self.own = own
        self.what = what
        self._entries = {}
        self._watched: dict[tuple[Form, Key], tuple[Function, tuple[Place, ...]]] = {}
        # Whether launches are known to need no watching: by all their integers and extents, of
        # which some may change each time, and by those of them that decide it.
        self._inside: dict[object, bool] = {}
        self._decided: dict[object, bool] = {}
        # What is known of kinds of launches: see `engine.runtime.races`.
        self.book: dict[object, Any] = {}
        self.raced = False  # whether somebody was told of a race
        self.compiles: bool | None = None  # whether the host can compile it, once known
        self._free: dict[object, None] = {}

    @property
    def ir(self) -> Function:
        return self.own.ir

    def _kept(self, form: Form, key: Key) -> None:
        """Only what runs unwatched is left to later processes."""

    def _keep(self, form: Form, key: Key, fn: Function, entry: Entry) -> None:
        """The same."""

    def watched(
        self, form: Form, wrt: Names, journaled: Names
    ) -> tuple[Function, tuple[Place, ...]]:
        """A form as it is compiled, and the places in it by their numbers."""
        key = (form, (wrt, journaled))
        if key not in self._watched:
            # It runs where another form has begun, in which places have other numbers.
            what = "silent" if FORMS[form].goes_on else self.what
            fn = ad.watch(self.own.function(form, wrt, journaled), what)
            self._watched[key] = (fn, places(fn)[1])
        return self._watched[key]

    def function(self, form: Form, wrt: Names, journaled: Names) -> Function:
        return self.watched(form, wrt, journaled)[0]

    def threads_of(self, form: Form, wrt: Names, journaled: Names) -> Threads:
        return self.own.threads_of(form, wrt, journaled)

    def bound(self, form: Form) -> bytes:
        return b""  # whoever runs it adds that of the kernel, before the address of what is seen

    @cached_property
    def floats_decide(self) -> bool:
        """Whether floats may decide what a thread touches."""
        return any(
            isinstance(s, Let)
            and not isinstance(s.dst.type, ArrayType)
            and not is_float(s.dst.type)
            and any(is_float(a.type) and not isinstance(a.type, ArrayType) for a in s.args)
            for f in (*callees(self.ir), self.ir)
            for s in walk(f.body)
        )

    def known_free(self, dim: tuple[int, ...], args: bytes) -> bool:
        """Whether the threads of such a launch are known to keep apart."""
        return (dim, self.own.threads.apart(args) or args) in self._free

    def note_free(self, dim: tuple[int, ...], args: bytes) -> None:
        """Notes that they are."""
        if len(self._free) >= _KEPT:
            self._free.clear()
        self._free[dim, self.own.threads.apart(args) or args] = None

    def inside(
        self, form: Form, wrt: Names, journaled: Names, dim: tuple[int, ...], args: bytes
    ) -> bool:
        """Whether no access of a launch can be outside of anything, as far as is known."""
        threads = self.own.threads_of(form, wrt, journaled)
        if bound := self.own.bound(form):
            args += bound
        key = (form, wrt, journaled, dim, threads.layout(args))
        known = self._inside.get(key)
        if known is None:
            if len(self._inside) >= _KEPT:
                self._inside.clear()
            known = self._inside[key] = self._proven(threads, (form, wrt, journaled), dim, args)
        return known

    def _proven(
        self, threads: Threads, what: tuple[Form, Names, Names], dim: tuple[int, ...], args: bytes
    ) -> bool:
        arrays = threads.arrays(args)
        given = threads.given(args, arrays)
        key = (what, dim, tuple(given.values()), tuple(a.shape for a in arrays))
        known = self._decided.get(key)
        if known is None:
            if len(self._decided) >= _KEPT:
                self._decided.clear()
            _, found = self.watched(*what)
            known = self._decided[key] = (
                threads.collected.known
                and not any(p.access in ("component", "view") for p in found)
                and not any(map(indexes_unseen, callees(threads.fn)))
                and _inside(threads, Bounds(dim, given), arrays)
            )
        return known


def _inside(threads: Threads, bounds: Bounds, arrays: Sequence[Placed]) -> bool:
    shapes = {a.name: a.shape for a in arrays}
    for a in threads.collected.accesses:
        for value, length in zip(a.index, shapes[a.array], strict=True):
            if value is None or not bounds.holds(value, a.facts):
                return False
            reach = bounds.interval(value.form, a.facts)
            if reach is None:
                return False
            low, high = reach
            if low <= high and not (low >= 0 and high < length):
                return False
    return True


def watched(variants: Variants, what: Literal["bounds", "races"]) -> Watched:
    """The watched kernel; made once."""
    key = ("watched", what)
    found = variants.derived.get(key)
    if found is None:
        found = variants.derived[key] = Watched(variants, what)
    assert isinstance(found, Watched)
    return found

"""What stores a linear function of an array: each kind of such a record is that function."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from copy import copy
from importlib import import_module
from os.path import dirname
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from engine.diagnostics.site import Site
from engine.runtime.array import array
from engine.runtime.leaves import float_parts
from engine.runtime.storage import Hold
from engine.tape.records.record import Description, Operand, Record, Replayer
from engine.tape.restoration import Restoration

if TYPE_CHECKING:
    from engine.tape.forward import Tangents

NumpyArray = np.ndarray[Any, Any]

# The kinds that are loaded, by the word that tapes, listings and archives have for each.
KINDS: dict[str, type[LinearRecord]] = {}


def kind_of(name: str) -> type[LinearRecord]:
    """The class of a kind. Raises KeyError.

    One that is not loaded is in the module beside this one that has its name, so that nothing need
    list it. Names come from archives of others, too: no other module is ever loaded.
    """
    if name not in KINDS:
        from pkgutil import iter_modules

        if any(m.name == name for m in iter_modules([dirname(__file__)])):
            import_module(f"{__package__}.{name}")
    return KINDS[name]


class LinearRecord(Record):
    """`dest` got a linear function of `src`, an array of the same form; without, the host's values.

    A kind is a subclass, `class ScaleRecord(LinearRecord, kind="scale", constants=1)`, with the
    function and its transpose; all else follows from them. numbers: its constants, as many as it
    says. source: what `src` held, where it came from outside of the tape.
    """

    __slots__ = ("dest", "name", "numbers", "source", "src")

    kind: ClassVar[str]
    constants: ClassVar[int]
    from_host: ClassVar[bool]

    def __init_subclass__(cls, *, kind: str, constants: int = 0, from_host: bool = False) -> None:
        """from_host: whether it has no `src`. Raises TypeError for a kind that there is already."""
        if kind in KINDS or kind in ("launch", "function"):
            raise TypeError(f"there is a kind of record {kind!r} already")
        cls.kind, cls.constants, cls.from_host = kind, constants, from_host
        KINDS[kind] = cls

    def __init__(
        self, name: str, dest: array, src: array | None, site: Site | None,
        source: Hold | None = None, numbers: Sequence[float] = (),
    ) -> None:  # fmt: skip
        self.name: str = name
        self.dest, self.src = dest, src
        self._site = site
        self.source = source
        self.numbers = tuple(numbers)

    # ---- what a kind is

    def forward(self, values: NumpyArray) -> NumpyArray:
        """What `dest` gets for what `src` holds, of floats and of their tangents.

        values: any floats, components last; of arrays of structs, one field. To be left as they
        are; the result has their shape.
        """
        raise NotImplementedError

    def transpose(self, cotangents: NumpyArray) -> NumpyArray:
        """What is added to the gradient of `src` for the gradient of `dest`: the same, backward."""
        raise NotImplementedError

    # ---- what follows from that

    @property
    def linear(self) -> LinearRecord:
        return self

    def on(self, dest: Any, src: Any = None) -> LinearRecord:
        """The same of other arrays."""
        out = copy(self)
        out.dest, out.src, out.source = dest, src, None
        return out

    @property
    def arrays(self) -> Sequence[array]:
        return [self.dest, *self.sources]

    @property
    def written(self) -> Sequence[array]:
        return [self.dest]

    @property
    def _is_captured(self) -> bool:
        return not isinstance(self.dest, array)  # but an outline

    @property
    def snapshots(self) -> Sequence[Hold]:
        # What a capture takes up is told of launches.
        return () if self.source is None or self._is_captured else (self.source,)

    def reverse(self, restored: Sequence[Restoration] = ()) -> None:
        if self._is_captured:
            raise self.gone()
        cotangent, src = self.dest.grad, self.src
        if cotangent is None:
            return
        into = None if src is None else src.grad
        to_host = cotangent.device.backend.to_host
        seeds = [] if into is None else [np.array(to_host(x)) for x in float_parts(cotangent)]
        cotangent.zero_()  # before the addition: both may be in the same memory
        if into is not None:
            into.storage.before_write(into.lo, into.hi)
            backend = into.device.backend
            with np.errstate(all="ignore"):  # a program may have NumPy raise
                for part, seed in zip(float_parts(into), seeds, strict=True):
                    total = backend.to_host(part)
                    np.add(total, self.transpose(seed), out=total, casting="unsafe")
                    if total is not part:  # a copy of what a GPU holds
                        backend.put(part, total)

    @property
    def stored(self) -> Iterable[array]:
        return (self.dest,)

    @property
    def sources(self) -> Sequence[array]:
        return () if self.src is None else (self.src,)

    def alike(self, number: Callable[[Any], object]) -> Hashable:
        return self.kind, self.numbers, super().alike(number)

    def passes_gradient(self, a: array) -> bool:
        return self.src is not None and self.src.requires_grad

    def operands(self) -> Iterable[Operand]:
        for a in self.sources:
            yield Operand(a, f"the source of a {self.name}", self.source, False)

    def only_read(self, captured: Record) -> Iterable[tuple[array, Hold | None]]:
        for a in self.sources:
            yield a, captured.source

    def captured(self, contents: bool = True) -> Record:
        from engine.tape.outline import outline  # late: only captures need it

        out = self.on(*map(outline, self.arrays))
        if contents and (a := self.src) is not None:
            out.source = a.storage.hold(a.lo, a.hi, eager=True)
        return out

    def replay(self, by: Replayer) -> None:
        by.linear(self)

    def describe(self, count: int) -> Description:
        names = ("dest", "src")[: 1 if self.from_host else 2]
        return Description(self.kind, names, tuple(range(1, len(names))), (0,))

    def tangent(self, tangents: Tangents) -> None:
        if self.src is None:
            tangents.clear(self.dest)
        else:
            tangents.store(self.dest, self.src, self.forward)

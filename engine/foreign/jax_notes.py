"""Notes about a JAX program: calls of rules, and the origin of their arguments.

Nothing is put into what JAX traces. An argument that has no value while a function is traced is
noted as the variable that it becomes in the traced program; a later call of that program, with
values, says what these were (`jax_values`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from engine.classes import dataclass
from engine.diagnostics import Site, Span

KEPT = 4  # calls of one traced program whose arguments are kept


@dataclass(frozen=True)
class Held:
    """An argument with a value. lanes: see Slot."""

    value: Any
    lanes: tuple[int | None, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for the same array, unless it is one that the program may change."""
        if isinstance(self.value, np.ndarray):
            return (object(),)
        return id(self.value), self.lanes


@dataclass(frozen=True)
class Slot:
    """An argument that is a variable of a traced program.

    lanes: the axes by which `vmap` split it, the outermost first; None for one that it left whole.
    """

    var: Any
    lanes: tuple[int | None, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for the same variable."""
        return id(self.var), self.lanes


@dataclass(frozen=True)
class Lost:
    """An argument that nothing is known of."""

    key: tuple[object, ...] = ()
    lanes: tuple[int | None, ...] = ()


Source = Held | Slot | Lost


@dataclass(frozen=True)
class Link:
    """A traced program that was run, or became part of another one, with these arguments.

    primitive, part: what runs it and as which of its programs: `scan`, `while` and `body_jaxpr`.
    x64: whether JAX had numbers of 64 bits then.
    """

    primitive: str
    part: str
    jaxpr: Any
    consts: Sequence[Any]
    params: dict[str, Any]
    args: tuple[Source, ...]
    x64: bool


@dataclass(frozen=True)
class Leaf:
    """One array among the arguments of a call: its place in the call, and its type."""

    source: Source
    shape: tuple[int, ...]
    dtype: Any
    weak: bool


@dataclass(frozen=True)
class Call:
    """A call of a rule.

    static: arguments that are no arrays, by their places. treedef, leaves: all other arguments.
    cells: what the functions of the rule have captured of traced programs. launched: of a kernel
    (`jax_kernels.Launched`), that has no rule.
    """

    rule: Any
    static: dict[int, Any]
    treedef: Any
    leaves: tuple[Leaf, ...]
    site: Site | None
    x64: bool
    cells: tuple[tuple[Any, Source], ...] = ()
    launched: Any = None

    @property
    def place(self) -> Span | None:
        """Where it is in the program."""
        return None if self.site is None else self.site.span


@dataclass
class Notes:
    """All that was noted. wanted: the variables that somebody asks for, by their numbers.

    asked: by the place of a backward rule and the number of leaves, of which of these a gradient
    was asked for, in all its calls together.
    """

    calls: list[tuple[int, Call]] = field(default_factory=list)
    links: dict[int, list[Link]] = field(default_factory=dict)
    wanted: dict[int, Any] = field(default_factory=dict)
    asked: dict[str, dict[int, list[bool]]] = field(default_factory=dict)
    _seen: dict[object, set[object]] = field(default_factory=dict)
    _programs: dict[int, int] = field(default_factory=dict)

    def ask(self, place: str, flags: Sequence[bool]) -> None:
        """Notes of which arguments' leaves a gradient is asked for, of the rule at that place."""
        of_place = self.asked.setdefault(place, {})
        known = of_place.get(len(flags), [False] * len(flags))
        of_place[len(flags)] = [a or b for a, b in zip(known, flags, strict=True)]

    def asked_of(self, place: str, count: int) -> list[bool] | None:
        """What was asked for of so many leaves, in all calls; None where nothing was."""
        out: list[bool] | None = None
        for flags in self.asked.get(place, {}).values():
            if len(flags) == count or (len(flags) > count and count not in self.asked[place]):
                here = flags[len(flags) - count :]  # constants of a traced program come first
                out = here if out is None else [a or b for a, b in zip(out, here, strict=True)]
        return out

    def again(self, kind: object, key: object) -> bool:
        """Whether a call of this kind was kept that had the very same arguments."""
        return key in self._seen.get(kind, ())

    def add(self, number: int, call: Call, kind: object, key: object) -> None:
        """Keeps a call. number: among all calls."""
        self._seen.setdefault(kind, set()).add(key)
        self.calls.append((number, call))
        self._want(x.source for x in call.leaves)
        self._want(source for _, source in call.cells)

    def link(self, link: Link, variables: Sequence[Any]) -> None:
        """Keeps that a traced program with these wanted variables ran with these arguments."""
        count = self._programs[id(link.jaxpr)] = self._programs.get(id(link.jaxpr), 0) + 1
        if count > KEPT:
            return
        for v in variables:
            self.links.setdefault(id(v), []).append(link)
        self._want(link.args)

    def _want(self, sources: Any) -> None:
        for s in sources:
            if isinstance(s, Slot):
                self.wanted[id(s.var)] = s.var


def variables(jaxpr: Any) -> Iterator[Any]:
    """All variables of a traced program, not of those inside of it."""
    yield from jaxpr.constvars
    yield from jaxpr.invars
    for equation in jaxpr.eqns:
        yield from equation.outvars

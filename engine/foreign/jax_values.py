"""Recovers the values of arguments that were traced before they had any."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from typing import Any

from engine.classes import dataclass
from engine.foreign.jax_notes import Call, Held, Link, Lost, Notes, Slot, Source

DEEP = 30  # programs inside of programs


class NoValues(Exception):
    """Why the values are not to be had."""


@dataclass(frozen=True)
class Look:
    """One way to choose among the values that an argument had.

    lane: of `vmap`, as a part of all; turn: of a loop; call: of a traced program, among those that
    are kept. extreme: -1 for the lane with the least number, 1 for that with the largest.
    """

    lane: float
    turn: int
    call: int
    extreme: int = 0


LOOKS = (Look(0.0, 0, 0), Look(1.0, 1, -1), Look(0.5, 3, 1))
EXTREMES = (Look(0.0, 0, 0, -1), Look(0.0, 0, 0, 1))

Values = tuple[list[Any], list[Any]]  # of a call's leaves, and of what its functions captured


def values_of(call: Call, notes: Notes, most: int = len(LOOKS)) -> list[Values]:
    """The values that a call had, where it ran more than once some of them.

    Empty where none are known.
    """
    sources = [x.source for x in call.leaves] + [s for _, s in call.cells]
    looks: tuple[Look, ...] = LOOKS
    if all(isinstance(s, Held) and not s.lanes for s in sources):
        looks = LOOKS[:1]
    looks = looks[:most]
    if most >= len(LOOKS) and any(axis is not None for s in sources for axis in s.lanes):
        looks = (*looks, *EXTREMES)
    out: list[Values] = []
    seen: set[bytes] = set()
    for look in looks:
        try:
            found = _Solver(notes, look).values(sources)
        except NoValues:
            continue
        digest = b"".join(_bytes(x) for x in found)
        if digest not in seen:
            seen.add(digest)
            count = len(call.leaves)
            out.append((found[:count], found[count:]))
    return out


def _is_real(x: Any) -> bool:
    import jax

    return bool(jax.numpy.issubdtype(x.dtype, jax.numpy.floating)) and x.size > 0


def _bytes(x: Any) -> bytes:
    import numpy as np

    try:
        return np.asarray(x).tobytes()
    except TypeError:  # keys of random numbers
        import jax

        return np.asarray(jax.random.key_data(x)).tobytes()


class _Solver:
    """Looks for values: of variables, by running what they were computed by."""

    def __init__(self, notes: Notes, look: Look) -> None:
        self.notes = notes
        self.look = look
        self.known: dict[int, Any] = {}
        self.depth = 0
        self.taken: dict[int, Link] = {}

    def values(self, sources: Sequence[Source]) -> list[Any]:
        """The values of arguments. Raises NoValues."""
        self._find([s.var for s in sources if isinstance(s, Slot)])
        whole = [self._whole(s) for s in sources]
        lanes = self._extremes(sources, whole) if self.look.extreme else {}
        return [self._lane(x, s.lanes, lanes) for x, s in zip(whole, sources, strict=True)]

    def _whole(self, source: Source) -> Any:
        if isinstance(source, Lost):
            raise NoValues
        x = source.value if isinstance(source, Held) else self.known[id(source.var)]
        if getattr(x, "is_deleted", bool)():
            raise NoValues
        return x

    def _lane(self, x: Any, axes: Sequence[int | None], lanes: dict[int, float]) -> Any:
        for level, axis in enumerate(reversed(axes)):
            if axis is not None:
                k = round(lanes.get(level, self.look.lane) * (x.shape[axis] - 1))
                x = x[(slice(None),) * axis + (k,)]
        return x

    def _extremes(self, sources: Sequence[Source], whole: Sequence[Any]) -> dict[int, float]:
        """The lanes, by their levels, in which the first split argument has its extreme."""
        import numpy as np

        for source, x in zip(sources, whole, strict=True):
            if not any(a is not None for a in source.lanes) or not _is_real(x):
                continue
            out = {}
            y = self.look.extreme * np.nan_to_num(np.asarray(x, np.float64))
            for level, axis in enumerate(reversed(source.lanes)):
                if axis is not None and y.size:
                    others = tuple(n for n in range(y.ndim) if n != axis)
                    k = int(np.argmax(np.max(y, axis=others)))
                    out[level] = k / max(1, y.shape[axis] - 1)
                    y = np.take(y, k, axis)
            return out
        return {}

    def _find(self, variables: Sequence[Any]) -> None:
        self.depth += 1
        if self.depth > DEEP:
            raise NoValues
        left = [v for v in variables if id(v) not in self.known]
        while left:
            links = self.notes.links.get(id(left[0]))
            if not links:
                raise NoValues
            together = [v for v in left if self.notes.links.get(id(v)) == links]
            for link in self._in_order(links):
                with contextlib.suppress(NoValues):
                    found = self._run(link, together)
                    self.taken.setdefault(id(link.jaxpr), link)
                    break
            else:
                raise NoValues
            self.known.update({id(v): x for v, x in zip(together, found, strict=True)})
            left = [v for v in left if id(v) not in self.known]
        self.depth -= 1

    def _in_order(self, links: Sequence[Link]) -> list[Link]:
        """The calls of a program: first that of which other values are, then that to look at."""
        first = min(self.look.call, len(links) - 1) % len(links)
        order = [*links[first:], *links[:first]]
        return sorted(order, key=lambda x: self.taken.get(id(x.jaxpr)) is not x)

    def _run(self, link: Link, wanted: Sequence[Any]) -> list[Any]:
        """The values of variables of a program, at the arguments that it had."""
        import jax

        with jax.enable_x64(link.x64):
            if link.primitive == "scan":
                return self._scanned(link, wanted)
            if link.primitive == "while":
                return self._looped(link, wanted)
            args = link.args
            if link.primitive == "cond":
                (which,) = self.values(args[:1])
                if int(which) != int(link.part):
                    raise NoValues
                args = args[1:]
            return self._evaluated(link, self._given(link, args, wanted), wanted)

    def _given(self, link: Link, args: Sequence[Source], wanted: Sequence[Any]) -> dict[int, Any]:
        """The values of the program's inputs that the variables need."""
        needed = _needed(link.jaxpr, wanted)
        pairs = [(v, s) for v, s in zip(link.jaxpr.invars, args, strict=True) if id(v) in needed]
        found = self.values([s for _, s in pairs])
        return {id(v): x for (v, _), x in zip(pairs, found, strict=True)}

    def _scanned(self, link: Link, wanted: Sequence[Any]) -> list[Any]:
        p = link.params
        consts, carried = int(p["num_consts"]), int(p["num_carry"])
        length = int(p["length"])
        if length == 0:
            raise NoValues
        ins = link.jaxpr.invars
        outs = list(link.jaxpr.outvars[:carried])
        turns = min(self.look.turn, length - 1)
        given = self._given(link, link.args, [*wanted, *outs] if turns else wanted)
        for turn in range(turns + 1):
            at = length - 1 - turn if p["reverse"] else turn
            here = dict(given)
            for v in ins[consts + carried :]:
                if id(v) in here:
                    here[id(v)] = here[id(v)][at]
            last = turn == turns
            found = self._evaluated(link, here, wanted if last else outs)
            if last:
                return found
            for v, x in zip(ins[consts : consts + carried], found, strict=True):
                given[id(v)] = x
        raise NoValues

    def _looped(self, link: Link, wanted: Sequence[Any]) -> list[Any]:
        p = link.params
        of_cond, of_body = int(p["cond_nconsts"]), int(p["body_nconsts"])
        start = link.args[of_cond + of_body :]
        if link.part == "cond_jaxpr":
            given = self._given(link, (*link.args[:of_cond], *start), wanted)
            return self._evaluated(link, given, wanted)
        cond = p["cond_jaxpr"]
        goes_on = Link("jit", "", cond.jaxpr, tuple(cond.consts), {}, (), link.x64)
        tests = list(cond.jaxpr.outvars)
        outs = list(link.jaxpr.outvars)
        given = self._given(
            link, (*link.args[of_cond : of_cond + of_body], *start), [*wanted, *outs]
        )
        others = self._given(goes_on, (*link.args[:of_cond], *start), tests)
        found: list[Any] | None = None
        for _ in range(self.look.turn + 1):
            if not bool(self._evaluated(goes_on, others, tests)[0]):
                break
            found = self._evaluated(link, given, [*wanted, *outs])
            for v, w, x in zip(
                link.jaxpr.invars[of_body:], cond.jaxpr.invars[of_cond:],
                found[len(wanted):], strict=True,
            ):  # fmt: skip
                given[id(v)] = others[id(w)] = x
        if found is None:
            raise NoValues
        return found[: len(wanted)]

    def _evaluated(self, link: Link, given: dict[int, Any], wanted: Sequence[Any]) -> list[Any]:
        """Variables of a program, by running the part of it that they need."""
        import jax
        from jax._src import core

        jaxpr = link.jaxpr
        direct = [v for v in wanted if id(v) in given or isinstance(v, core.Literal)]
        rest = [v for v in wanted if id(v) not in given and not isinstance(v, core.Literal)]
        known = {id(v): given[id(v)] if id(v) in given else v.val for v in direct}  # noqa: SIM401
        if rest:
            needed = _needed(jaxpr, rest)
            equations = [e for e in jaxpr.eqns if any(id(v) in needed for v in e.outvars)]
            if any(type(x).__name__ not in _HARMLESS for e in equations for x in e.effects):
                raise NoValues
            pairs = [
                (v, c) for v, c in zip(jaxpr.constvars, link.consts, strict=True) if id(v) in needed
            ]  # fmt: skip
            ins = [v for v in jaxpr.invars if id(v) in needed]
            part = jaxpr.replace(
                constvars=[], invars=[*(v for v, _ in pairs), *ins], outvars=rest, eqns=equations,
                debug_info=jaxpr.debug_info.with_unknown_names(),
            )  # fmt: skip
            run = jax.jit(core.jaxpr_as_fun(core.ClosedJaxpr(part, [])))
            mute = contextlib.redirect_stdout(io.StringIO())
            try:
                with mute, jax.debug_nans(False):
                    found = run(*(c for _, c in pairs), *(given[id(v)] for v in ins))
                    jax.block_until_ready(found)
                    jax.effects_barrier()
            except Exception as error:
                raise NoValues from error
            known.update({id(v): x for v, x in zip(rest, found, strict=True)})
        return [known[id(v)] for v in wanted]


# Effects of what may run once more.
_HARMLESS = ("DebugEffect", "OrderedDebugEffect", "UnorderedDebugEffect", "NamedAxisEffect")


def _needed(jaxpr: Any, wanted: Sequence[Any]) -> set[int]:
    """The numbers of the variables by which others are computed, and of these."""
    out = {id(v) for v in wanted}
    for equation in reversed(jaxpr.eqns):
        if any(id(v) in out for v in equation.outvars):
            out.update(id(v) for v in equation.invars)
    return out

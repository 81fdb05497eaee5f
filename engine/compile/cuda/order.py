"""Finds launches whose result depends on the order of threads, which a GPU does not define.

`check_order` refuses adjoints that would need one. Where the same bits are asked for each time
(`config.deterministic`), `needs_order` says which launches one CUDA thread has to run; what such
launches did to each other through memory, their adjoints undo as the CPU does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from engine import config
from engine.ad.threads import Access, Group
from engine.compile.backend import Entry, Restless, raced
from engine.compile.cuda.overlaps import clashing, meeting
from engine.compile.cuda.winners import NOTHING, Won
from engine.compile.threads import Threads
from engine.diagnostics import Diagnostic, LaunchError
from engine.lang.types import is_float, scalar_of
from engine.logger import log_info

_USES = "one thread uses a value that another one writes"


def check_order(
    symbol: str, threads: Threads, dim: tuple[int, ...], args: bytes, won: Won = NOTHING
) -> None:
    """Raises LaunchError (E407) for an adjoint that has to undo what threads did to each other.

    won: what the recorded launch knows of minima and maxima.

    Accesses that nothing is known of run as they do on GPUs: elements that two threads store to
    have a value of either.
    """
    classes = threads.classes_of(dim, args)
    if classes.order_free or raced.get():
        return
    primal = {adjoint: p for p, adjoint in threads.gradients.items()}
    found = [(_objection(g, frozenset(primal[k] for k in g.names if k in primal), won), g.names)
             for g in classes.groups]  # fmt: skip
    if any(g.sharing == "unproven" for g in classes.groups):
        found.append(_overlap(threads, dim, args))
        found += [_clash(threads, dim, args, g) for g in classes.groups if g.sharing == "unproven"]
    for why, names in found:
        if why is None:
            continue
        access, what = why
        name = symbol.rpartition("_")[0]  # the rest is a hash
        array = next((primal[k] for k in names if k in primal), names[0])
        raise LaunchError(
            Diagnostic(
                "E407", f"kernel {name!r}: the gradient of {array!r} depends on the order of the "
                        f"threads, and on a GPU the order is not fixed: {what}",
                access.span, 'let threads add with `atomic_add`, launch with device="cpu", or '
                             "set `engine.config.deterministic = True` before the launch, which "
                             "then runs the threads one after another",
            )
        )  # fmt: skip


def needs_order(entry: Entry, dim: tuple[int, ...], args: bytes, won: Won = NOTHING) -> bool:
    """Whether a launch is `restless`; says so where that is asked for."""
    found = restless(entry.threads, dim, args, won)
    if found and config.deterministic_debug:
        name, what = entry.symbol.rpartition("_")[0], "its adjoint" * entry.code.is_adjoint
        where = f", {found.span}" * (found.span is not None)
        log_info(f"kernel {name!r}: one thread of the GPU runs {what or 'it'}: {found.what}{where}")
    return found is not None


def restless(
    threads: Threads | None, dim: tuple[int, ...], args: bytes, won: Won,
    but: frozenset[str] = frozenset(),
) -> Restless | None:  # fmt: skip
    """Why a launch may give other bits in another order of its threads; None where it does not.

    won: what is known of minima and maxima, after the launch or by the one that the adjoint is of.
    but: arrays whose sums have an order anyway.
    """
    if threads is None:
        return Restless("the accesses of its threads are unknown")
    key = ("restless", dim, threads.apart(args), won, but)
    if key not in threads.alike:
        if len(threads.alike) >= 256:
            threads.alike.clear()
        threads.alike[key] = _restless(threads, dim, args, won, but)
    return cast("Restless | None", threads.alike[key])


def _restless(
    threads: Threads, dim: tuple[int, ...], args: bytes, won: Won, but: frozenset[str]
) -> Restless | None:
    classes = threads.classes_of(dim, args)
    if not classes.known:
        return Restless("it is too large for the analysis")
    if classes.stops:
        return Restless("it has assertions, or native text that may keep a state")
    primal = {adjoint: p for p, adjoint in threads.gradients.items()}
    floats = {a.name for a in threads.arrays(args) if is_float(scalar_of(a.type.element))}
    for g in classes.groups:
        names = frozenset(g.names)
        mine = frozenset(primal[k] for k in names if k in primal)
        if g.sharing in ("shared", "owned"):
            continue
        if g.sharing == "accumulate" and (names <= but or not names & floats):
            continue
        # Which minimum is left has no order, but what each thread found does.
        if g.sharing == "replace" and (names in won.groups or not names & won.fought):
            continue
        if g.sharing == "take" and mine & won.fought and _known(mine, won):
            continue
        why = (*g.why, *g.accesses)[0]
        what = "add floats to" if g.sharing == "accumulate" else "use or replace"
        array = next((primal[k] for k in names if k in primal), why.array)
        what = f"{what} an element of {'the gradient of ' * (array != why.array)}{array!r}"
        return Restless(f"several threads {what}", why.span)
    return None


def _known(primals: frozenset[str], won: Won) -> bool:
    """Whether the journal names the winners of arrays that are one."""
    return any(g.issuperset(primals) for g in won.groups)


def _overlap(
    threads: Threads, dim: tuple[int, ...], args: bytes
) -> tuple[tuple[Access, str] | None, tuple[str, ...]]:
    """The same for arguments that share memory, and the arrays in question."""
    return _told(threads, ("overlap", dim, threads.apart(args)),
                 lambda: meeting(threads, dim, args))  # fmt: skip


def _clash(
    threads: Threads, dim: tuple[int, ...], args: bytes, group: Group
) -> tuple[tuple[Access, str] | None, tuple[str, ...]]:
    """The same for one array of whose accesses some are known."""
    return _told(threads, ("clash", group.names, dim, threads.apart(args)),
                 lambda: clashing(threads, dim, args, group.accesses))  # fmt: skip


def _told(
    threads: Threads, key: object, look: Callable[[], tuple[Access, Access] | None]
) -> tuple[tuple[Access, str] | None, tuple[str, ...]]:
    """What is said of two accesses that meet; once for launches that are alike."""
    if key not in threads.alike:
        if len(threads.alike) >= 256:
            threads.alike.clear()
        threads.alike[key] = look()
    met = cast("tuple[Access, Access] | None", threads.alike[key])
    if met is None:
        return None, ()
    read, change = met
    one = read.array == change.array and read.kind == change.kind
    what = "several threads replace one element" if one else _USES
    return (change, what), (change.array, read.array)


def _objection(group: Group, primals: frozenset[str], won: Won) -> tuple[Access, str] | None:
    """The access by which a group needs an order, and why; None where it needs none, or may.

    primals: the arrays whose gradients its arrays are.
    """
    if not group.why:
        return None
    if group.sharing == "ordered":
        return group.why[0], _USES
    takes = [a for a in group.accesses if a.kind == "take"]
    if takes and primals & won.fought:
        known = group.sharing == "take" and _known(primals, won)
        return None if known else (takes[0], "several threads replace one element")
    # Indices of which nothing is known are most often those of a permutation.
    if group.sharing == "take" and not any(None in a.index for a in group.why):
        return group.why[0], "several threads replace one element"
    return None

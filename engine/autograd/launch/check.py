"""Checks one recorded launch."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import field, replace

import numpy as np

from engine.autograd.comparison.block import EntryBlock
from engine.autograd.launch.compare import CompareOptions, compare
from engine.autograd.launch.confirmed import confirmed
from engine.autograd.launch.derived import can_lift, generated
from engine.autograd.launch.detached import detached
from engine.autograd.launch.directions import Comparisons, Pair
from engine.autograd.launch.evaluation import EvaluationFailed, Evaluations
from engine.autograd.launch.experience import Experience
from engine.autograd.launch.explanation import blamed, cornered, explained, handwritten
from engine.autograd.launch.iterations import iterated
from engine.autograd.launch.linearity import with_linearity
from engine.autograd.launch.mask import masked
from engine.autograd.launch.paths import (
    adjoints_differ,
    faithful,
    on_its_path,
    takes_another_path,
)
from engine.autograd.launch.recorded_arguments import (
    NotRepeatable,
    RecordedLaunch,
    recorded_launch,
    shape_key,
)
from engine.autograd.launch.second_derivative import NoSecondDerivative, check_second
from engine.autograd.launch.spread import marked_nondeterministic, spreads_of
from engine.autograd.launch.unassigned import unassigned_reads
from engine.autograd.results import LaunchResult, Spread
from engine.autograd.variables.roles import Mask
from engine.classes import dataclass
from engine.draws import default_rng
from engine.tape.naming import variable
from engine.tape.records import LaunchRecord

_REPEATED = 4  # launches of a kind that are repeated on the GPU that they ran on


@dataclass(frozen=True)
class LaunchOptions:
    """How to check a launch.

    mask: the pairs to look at; None for all. order: 2 for second derivatives, too. seed: of the
    random directions. whole: the tape as a whole is checked next, and may answer for the launch.
    """

    compare: CompareOptions = field(default_factory=CompareOptions)
    mask: Mask | None = None
    order: int = 1
    seed: int = 0
    whole: bool = False

    @property
    def leaves(self) -> bool:
        """Whether the launch may be left to the check of the tape as a whole."""
        how = self.compare
        plain = how.tolerance.auto and not (how.every_entry or how.asks_for_entries)
        return self.whole and plain and self.mask is None and self.order == 1


@dataclass(frozen=True)
class CheckedLaunch:
    """What a check found, and the entries that it compared, for plots; None where nothing was."""

    result: LaunchResult
    blocks: Mapping[Pair, EntryBlock] | None = None


def check_launch(
    index: int, record: LaunchRecord, options: LaunchOptions, experience: Experience
) -> CheckedLaunch:
    """Checks a launch at the values that its arguments had.

    index: its number. experience: with launches that were checked before; this one is added.
    """
    variants = record.plan.variants
    result = LaunchResult(
        index, record.kernel.key, tuple(record.dim), (), variants.ir.span, record.site
    )
    if not record.selection.useful and record.selection.wrt & variants.written:
        return _skipped(result, "gradients stop at it: its enable_backward is False")
    kind = shape_key(record)
    like = experience.skipped(kind)
    if like is None and options.leaves and (like := experience.like(kind)) is not None:
        rng = default_rng([0x61A, options.seed, index])
        like = like if experience.seems_right(kind, record, rng) else None
    if like is not None:
        experience.add(kind)
        return CheckedLaunch(replace(like, index=index, site=record.site))
    result = replace(result, culprits=handwritten(variants), iterated=iterated(variants))
    try:
        launch = recorded_launch(record)
        if not np.prod(launch.dim, dtype=np.int64):
            return _skipped(result, "the launch has no threads")
        result = replace(result, unassigned=unassigned_reads(launch))
        return _checked(result, record, launch, options, experience, kind)
    except NotRepeatable as why:
        return _skipped(result, str(why))
    except EvaluationFailed as why:
        return _skipped(result, f"its check could not run: {why}")
    except MemoryError:
        return _skipped(result, "its check does not fit into memory")


def _checked(
    result: LaunchResult, record: LaunchRecord, launch: RecordedLaunch, options: LaunchOptions,
    experience: Experience, kind: Hashable,
) -> CheckedLaunch:  # fmt: skip
    with faithful(launch) as evaluated:
        if not evaluated.inputs or not evaluated.outputs:
            side = "output" if evaluated.inputs else "input"
            why = f"the launch has no floating-point {side} array with requires_grad=True"
            skipped = _skipped(result, why)
            experience.skip(kind, skipped.result)
            return skipped
        pairs = masked(record, options.mask, evaluated.own.owner)
        # A stream of its own: the user's data may come from the same seed.
        rng = default_rng([0xC0DE, options.seed, result.index, experience.count(kind)])
        look = experience.look(kind)
        every = options.compare.every_entry or look == "entries"
        jointly = look in ("jointly", "whole")
        how = replace(
            options.compare, every_entry=every, jointly=jointly, kinked=experience.kinked(kind)
        )
        compared = compare(evaluated, how, rng, pairs)
        verdicts = {c.verdict for c in compared.pairs.values()}
        if (compared.beside or "kink" in verdicts) and not verdicts & {"fail", "nan"}:
            experience.add_kinked(kind)
        if result.culprits:
            compared = replace(compared, pairs=with_linearity(evaluated, compared.pairs, rng))
        if adjoints_differ(compared.pairs) and takes_another_path(launch):
            return _checked(result, record, launch, options, experience, kind)
        compared = replace(compared, pairs=_beside_kinks(launch, compared.pairs, how, rng))
        experience.add(kind)
        beside = default_rng([0xF0D, options.seed, result.index])
        compared = replace(compared, pairs=confirmed(evaluated, compared.pairs, beside))
        ends = launch.variants.stops(evaluated.own.wrt)
        found = explained(compared.pairs, evaluated, rng)
        if any(p.verdict == "kink" for p in found) and experience.new(("kink", kind)):
            found = cornered(found, evaluated)
        spreads = _spreads(record, evaluated, options, experience, kind)
        found = marked_nondeterministic(found, spreads)
        result = replace(
            result, stops=tuple((f.name, f.span) for f in ends), pairs=found,
            blame=blamed(found, evaluated, rng, experience.shown), spreads=spreads,
        )  # fmt: skip
        through = detached(launch, compared.pairs, how)
        if through:
            at = {p.name: p.index for p in record.plan.params}
            names = tuple(variable(record, at[name]) or name for name in through)
            result = replace(result, detached=names)
        if options.order > 1 and not jointly:
            try:
                second = check_second(evaluated, options.compare.tolerance, rng)
                result = replace(result, pairs=(*result.pairs, *second))
            except NoSecondDerivative as why:
                result = replace(result, no_second=str(why))
        experience.learn(kind, result, generated(launch.variants))
        return CheckedLaunch(result, compared.blocks)


def _spreads(
    record: LaunchRecord, launch: Evaluations, options: LaunchOptions, experience: Experience,
    kind: Hashable,
) -> tuple[Spread, ...]:  # fmt: skip
    """What its runs differ by on a GPU. Of the first launches of a kind: one may hold zeros."""
    met = experience.count(kind)
    if met > _REPEATED:
        return ()
    return spreads_of(record, launch.own, default_rng([0x5EED, options.seed, met]))


def _beside_kinks(
    launch: RecordedLaunch, pairs: Comparisons, options: CompareOptions, rng: np.random.Generator
) -> Comparisons:
    """The pairs; what is open is looked at on the launch's own path, where there are no kinks."""
    open_ones = [pair for pair, c in pairs.items() if c.verdict == "inconclusive"]
    if not open_ones or not can_lift(launch.variants):
        return pairs
    with on_its_path(launch) as steered:
        if steered is None:
            return pairs
        # Directions cover a pair, and need no entries here.
        again = compare(steered, replace(options, every_entry=False), rng, open_ones).pairs
    passed = {
        pair: replace(c, off=pairs[pair].off, scale=pairs[pair].scale)
        for pair, c in again.items()
        if c.verdict == "pass"
    }
    return {**pairs, **passed}


def _skipped(result: LaunchResult, why: str) -> CheckedLaunch:
    return CheckedLaunch(replace(result, skipped=why))

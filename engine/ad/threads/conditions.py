"""Ranges of integers that a condition implies."""

from __future__ import annotations

from collections.abc import Callable

from engine.ad.threads.affine import Fact, Form, Value
from engine.classes import dataclass


@dataclass(frozen=True)
class Condition:
    """What is known where a boolean is true, and where it is false. constant: if it is one."""

    true: tuple[Fact, ...] = ()
    false: tuple[Fact, ...] = ()
    constant: bool | None = None


NEVER = Condition(constant=False)
ALWAYS = Condition(constant=True)


def compared(op: str, a: Value, b: Value) -> Condition:
    needs = a.needs | b.needs

    def at_least(x: Form, least: int) -> Fact:
        return Fact(Value(x + Form.of(-least), needs))

    less, more = b.form - a.form, a.form - b.form
    if op == "lt":
        return Condition((at_least(less, 1),), (at_least(more, 0),))
    if op == "le":
        return Condition((at_least(less, 0),), (at_least(more, 1),))
    if op == "gt":
        return Condition((at_least(more, 1),), (at_least(less, 0),))
    if op == "ge":
        return Condition((at_least(more, 0),), (at_least(less, 1),))
    return Condition((at_least(less, 0), at_least(more, 0)))


LOGIC: dict[str, Callable[..., Condition]] = {
    "lnot": lambda a: Condition(a.false, a.true, None if a.constant is None else not a.constant),
    "land": lambda a, b: Condition((*a.true, *b.true)),
    "lor": lambda a, b: Condition((), (*a.false, *b.false)),
}


def joined(cond: Condition, then: Condition, orelse: Condition) -> Condition:
    """What a boolean tells after a branch."""
    return Condition(
        _either(cond, then.true, orelse.true, then.constant is False, orelse.constant is False),
        _either(cond, then.false, orelse.false, then.constant is True, orelse.constant is True),
    )


def _either(
    cond: Condition, then: tuple[Fact, ...], orelse: tuple[Fact, ...], never: bool, nor: bool
) -> tuple[Fact, ...]:
    """What holds where one of two things does. never, nor: it cannot be the first, the second."""
    if never:
        return (*cond.false, *orelse)
    if nor:
        return (*cond.true, *then)
    return tuple(f for f in then if f in orelse)

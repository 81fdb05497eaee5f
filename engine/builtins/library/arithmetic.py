"""Operators that are composed of other operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.builtins import infer as i
from engine.builtins import language as wp
from engine.builtins.composite import composite
from engine.ir.ops import Domain
from engine.lang.types import Type, scalar_of


def _number_and_tensor(types: Sequence[Type]) -> bool:
    return len(types) == 2 and i.tensor(types[1]) and types[0] == scalar_of(types[1])


def _over(s: Any, v: Any) -> Any:
    return wp.cw_div(type(v)(s), v)


for _name in ("/", "div", "div_approx"):
    composite(
        f"{_name if _name.isidentifier() else 'div'}(s, v): a number divided by each component "
        "of a vector or matrix.",
        _number_and_tensor,
        user=_name,
        domain=Domain(((-2.0, 2.0), (0.5, 2.0)), singular=(0.0,)),
    )(_over)

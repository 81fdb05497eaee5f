"""JSON with indentation is what the standard library writes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adtool.indented import indented

PLAIN = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False)
)
DATA = st.recursive(PLAIN, lambda x: st.lists(x) | st.dictionaries(st.text(), x), max_leaves=30)


@given(DATA, st.integers(0, 4))
def test_any_data(data: Any, indent: int) -> None:
    assert indented(data, indent) == json.dumps(data, indent=indent, allow_nan=False)


@given(st.lists(DATA, min_size=1))
def test_lists_that_come_again(items: list[Any]) -> None:
    data = {"a": [items, items], "b": {"c": items}, "d": items}
    assert indented(data, 2) == json.dumps(data, indent=2, allow_nan=False)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("place", [lambda x: x, lambda x: [x], lambda x: {"a": [[], x]}])
def test_numbers_that_json_has_not(number: float, place: Any) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        indented(place(number), 2)

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adtool.codec import CodecError, brief, dumps, loads


@dataclass(frozen=True)
class Leaf:
    number: float
    kind: Literal["a", "b"] = "a"


@dataclass(frozen=True)
class Tree:
    leaves: tuple[Leaf, ...]
    pair: tuple[str, int] | None = None
    flag: bool = False


@given(
    st.builds(
        Tree,
        st.lists(
            st.builds(Leaf, st.floats(allow_nan=False), st.sampled_from(["a", "b"])), max_size=4
        ).map(tuple),
        st.none() | st.tuples(st.text(), st.integers()),
        st.booleans(),
    )
)
def test_round_trip(tree: Tree) -> None:
    assert loads(Tree, dumps(tree)) == tree
    assert loads(Tree, brief(tree)) == tree
    assert len(brief(tree)) <= len(dumps(tree))


def test_defaults_are_left_out_where_nobody_reads_them() -> None:
    assert json.loads(brief(Tree((Leaf(0.0), Leaf(1.0, "b"))))) == {
        "leaves": [{"number": 0.0}, {"number": 1.0, "kind": "b"}]
    }


def test_special_values_are_strings() -> None:
    text = dumps(Tree((Leaf(math.nan), Leaf(math.inf), Leaf(-math.inf))))
    assert [x["number"] for x in json.loads(text)["leaves"]] == ["nan", "inf", "-inf"]
    back = loads(Tree, text)
    assert math.isnan(back.leaves[0].number)
    assert [x.number for x in back.leaves[1:]] == [math.inf, -math.inf]


def test_numpy_scalars_become_numbers() -> None:
    text = dumps({"a": np.float32(0.5), "b": np.int64(3), "c": np.bool_(True), "d": np.float64(1)})
    assert json.loads(text) == {"a": 0.5, "b": 3, "c": True, "d": 1.0}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"leaves": [{"number": NaN}]}', "NaN"),
        ('{"leaves": [{"number": 1e999}]}', "$.leaves[0].number"),
        ('{"leaves": [{"number": true}]}', "$.leaves[0].number"),
        ('{"leaves": [{"number": "many"}]}', "$.leaves[0].number"),
        ('{"leaves": [{"number": 1, "kind": "c"}]}', "$.leaves[0].kind"),
        ('{"leaves": [{}]}', "`number` is missing"),
        ('{"leaves": {}}', "$.leaves"),
        ('{"leaves": [], "pair": ["x", true]}', "$.pair[1]"),
        ('{"leaves": [], "pair": ["x"]}', "$.pair"),
        ('{"leaves": [], "flag": 1}', "$.flag"),
        ("[]", "$"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_what_does_not_fit_is_refused_by_place(text: str, place: str) -> None:
    with pytest.raises(CodecError) as caught:
        loads(Tree, text)
    assert place in str(caught.value)


def test_unknown_keys_are_ignored() -> None:
    assert loads(Leaf, '{"number": 1, "later": {}}') == Leaf(1.0)

"""The range of a logarithmic axis, and what plots do with what lies outside of it."""

from __future__ import annotations

import math
import random
import re
from xml.etree import ElementTree

import pytest

from adtool.figures import norms, remainders
from adtool.figures.scale import log_limits
from adtool.page import charts


@pytest.mark.parametrize("seed", range(20))
def test_the_bulk_is_always_seen(seed: int) -> None:
    """Nine tenths of the values lie within, and take up a fifth of the axis or 1e6."""
    dice = random.Random(seed)
    bulk = [10 ** dice.uniform(0, dice.choice((0.1, 3, 30))) for _ in range(100)]
    odd = [10 ** dice.uniform(-200, 200) for _ in range(dice.randint(0, 8))]
    low, high = log_limits([*bulk, *odd, 0.0, math.nan, math.inf])
    logs = sorted(map(math.log10, bulk))
    assert low <= logs[4] and logs[-5] <= high
    wide = logs[-11] - logs[10]
    assert high - low <= max(6.0, 5 * wide + 4.1)


def test_without_outliers_all_is_shown() -> None:
    values = [10.0**-k for k in range(300)]  # a gradient that fades from launch to launch
    low, high = log_limits(values)
    assert (round(low), round(high)) == (-299, 0)
    assert log_limits([]) == (0.0, 0.0)
    assert log_limits([1.0, 1e30]) == pytest.approx((0.0, 30.0))  # none of two is an outlier


def curve(values: list[float]) -> charts.Curve:
    return charts.Curve("k", tuple((float(k), v) for k, v in enumerate(values)))


def test_an_outlier_is_a_ring_at_the_edge_of_the_pages_chart() -> None:
    values = [1.0 + 0.1 * (k % 3) for k in range(30)]
    values[11] = 1e20
    root = ElementTree.fromstring(charts.chart([curve(values)], "a", "x", "y", log=True))
    rings = [c for c in root.iter("circle") if c.get("class") == "off"]
    assert len(rings) == 1
    title = rings[0].find("title")
    assert title is not None and "off the scale: 1e+20" in (title.text or "")
    heights = [float(c.get("cy", "")) for c in root.iter("circle") if c.get("class") == "dot"]
    assert len(heights) == 29 and min(heights) > float(rings[0].get("cy", ""))
    assert max(heights) - min(heights) > 2  # and the rest is no line


@pytest.mark.parametrize("most", [3.0, 900.0, 1e6, 5e13])
def test_the_title_of_an_axis_is_beside_its_labels(most: float) -> None:
    """The title is turned, 12 high, around x = 13; labels end where the lines of the grid begin."""
    text = charts.chart([curve([0.0, most])], "a", "x", "bytes so far", bytes_=True)
    root = ElementTree.fromstring(text)
    grid = min(float(x.get("x1", "")) for x in root.iter("line") if x.get("class") == "grid")
    labels = [t for t in root.iter("text") if t.get("text-anchor") == "end"]
    assert labels
    for t in labels:
        assert float(t.get("x", "")) - 6.6 * len(t.text or "") >= 13 + 6
        assert float(t.get("x", "")) < grid


def test_an_outlier_is_named_in_the_plot_of_norms() -> None:
    from adtool.course import course
    from tests.unit.adtool.test_course import traced

    factors = [1.1, 0.9] * 15
    factors[10:12] = [1e-12, 1e12]
    figure = norms._figure(course(traced(factors)), "x")
    (axes,) = figure.axes
    words = [t.get_text() for t in axes.get_legend().get_texts()]
    assert any(re.match(r"(above|below) the scale: ", w) for w in words), words
    low, high = axes.get_ylim()
    assert high / low < 1e9
    along = course(traced(factors)).along
    assert axes.get_title().startswith(f"x\ngoing backward, the norm at {along} ")


@pytest.mark.parametrize(("low", "high"), [(1.4e-11, 4.6e-10), (1e-9, 1e-1), (3.1e-5, 4.2e-5)])
def test_ticks_of_steps_are_few_and_inside(low: float, high: float) -> None:
    ticks = remainders._ticks(low, high)
    assert 2 <= len(ticks) <= 4
    assert all(low <= t <= high for t in ticks)
    assert len({f"{t:.0e}" for t in ticks}) == len(ticks)

"""What further runs of a target add to what is known of its tapes."""

from __future__ import annotations

from typing import Any

import pytest

from adtool.reruns import _with
from engine.autograd import Broken, TapeResult
from engine.diagnostics import Span

COPY = Broken(
    "copy", "wp.array(o.numpy())", Span("rnn.py", 17, 13, 17, 40), ("o",),
    to=Span("rnn.py", 18, 5, 18, 40),
)  # fmt: skip


def host(line: int, to: int, file: str = "rnn.py") -> Broken:
    return Broken("host", "", Span(file, line, 22, line, 31), ("o",), to=Span(file, to, 5, to, 40))


@pytest.mark.parametrize(("line", "to"), [(17, 18), (17, 30), (12, 18)])
def test_a_way_that_was_followed_is_told_once(line: int, to: int, launch: Any) -> None:
    tape = TapeResult(0, (launch(0),), broken=(COPY,))
    assert _with(tape, host(line, to), True).broken == (COPY,)


@pytest.mark.parametrize("other", [host(12, 30), host(17, 18, "other.py")])
def test_another_way_is_told_too(other: Broken, launch: Any) -> None:
    tape = TapeResult(0, (launch(0),), broken=(COPY,))
    assert _with(tape, other, True).broken == (COPY, other)
    assert _with(TapeResult(0, (launch(0),)), other, True).broken == (other,)

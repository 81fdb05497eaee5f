"""The check of a capture in parts: what the parts are, and that nothing is lost between them."""

from __future__ import annotations

from typing import Any

import pytest

from adtool import codec
from adtool.captures import parts
from adtool.captures.parts import check_part, merged, parts_of, wholes_of
from adtool.job import CheckOptions, Part
from engine.archive import unpack
from engine.autograd import TapeResult, check_tape
from tests.unit.archive.test_round_trip import (
    Memory,
    captured,
    program_of_functions,
    program_of_views,
    program_that_overwrites,
)

from engine.archive import pack  # isort: skip


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        ([], []),
        ([3], [(0, 1, None)]),
        ([3, 3, 4], [(0, 2, None), (2, 3, None)]),
        ([0, 0, 9], [(0, 2, None), (2, 3, (0, 6)), (2, 3, (6, 9))]),
        ([6, 7, 1], [(0, 1, None), (1, 2, (0, 6)), (1, 2, (6, 7)), (2, 3, None)]),
    ],
)
def test_parts(monkeypatch: pytest.MonkeyPatch, recorded: list[int], expected: list[Any]) -> None:
    monkeypatch.setattr(parts, "SIZE", 6)
    assert [(p.first, p.end, p.launches) for p in parts_of(recorded)] == expected


class Page:
    """Nobody looks at the progress."""

    def check(self, *args: object) -> None:
        del args


def of_parts(archive: Any, store: Memory, options: CheckOptions) -> tuple[TapeResult, ...]:
    def run(some: list[Part]) -> list[TapeResult]:
        out: list[TapeResult] = []
        for p in some:
            outcome = check_part(unpack(archive, store), p, options, Page())  # type: ignore[arg-type]
            assert outcome.kind == "done"
            out += codec.loads(type(outcome), codec.dumps(outcome)).tapes
        return out

    recorded = [sum(r.kind == "launch" for r in t.records) for t in archive.tapes]
    tapes = merged(run(parts_of(recorded)))
    return merged([*tapes, *run(wholes_of(tapes, options))])


def test_all_is_found_by_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    def program() -> None:
        for p in (program_of_views, program_that_overwrites, program_of_functions):
            p()

    store = Memory()
    archive, _ = pack(captured(program), store)
    before = tuple(check_tape(t) for t in unpack(archive, store))
    for size in (1, 2, 100):
        monkeypatch.setattr(parts, "SIZE", size)
        assert verdicts(of_parts(archive, store, CheckOptions())) == verdicts(before)
    monkeypatch.setattr(parts, "SIZE", 1)
    chosen = CheckOptions(launches=("1:2", "0"), end_to_end=False)
    found = of_parts(archive, store, chosen)
    assert [(t.tape, [x.index for x in t.launches]) for t in found if t.launches] == [
        (0, [0]), (1, [0, 2]), (2, [0]),
    ]  # fmt: skip
    assert not any(t.whole for t in found)


def verdicts(tapes: tuple[TapeResult, ...]) -> Any:
    return [
        (
            t.tape, [(x.index, x.kernel, [(p.input, p.output, p.verdict) for p in x.pairs])
                     for x in t.launches],
            t.whole and (t.whole.verdict, t.whole.reason, t.whole.cause), t.facts,
            {(u.what, u.reason) for u in t.unchecked},
        )
        for t in tapes
    ]  # fmt: skip

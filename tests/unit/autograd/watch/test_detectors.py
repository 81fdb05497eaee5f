"""A detector is one module: it gets events, and its fact travels; nothing else names it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import engine as wp
from adtool import codec
from adtool.fitting import Unfit, fit
from engine.archive import Archive, pack, unpack
from engine.autograd import TapeResult, Witness, check_tape, fact_named
from engine.autograd.facts import FACTS
from engine.autograd.watch import detectors
from tests.unit.archive.test_round_trip import Memory
from tests.unit.autograd.watch.programs import floats, ones, square, zeros

MODULE = '''
"""Counts the records of a tape that runs backward."""

from __future__ import annotations

from engine.autograd.facts import Fact
from engine.autograd.watch.detector import Detector
from engine.classes import dataclass
from engine.diagnostics import Span


@dataclass(frozen=True, slots=True)
class Counted(Fact):
    """How much a tape had recorded, and where its pass is."""

    records: int
    site: Span | None


class Counter(Detector):
    def __init__(self, program):
        super().__init__(program)
        self.count = 0

    def recorded(self, tape, record):
        self.count += 1

    def ended(self, tape, run):
        tape.tell(Counted(self.count, run.site and run.site.span))
'''


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A detector in a folder of its own, which is gone afterwards."""
    (tmp_path / "counting.py").write_text(MODULE)
    monkeypatch.setattr(detectors, "__path__", [*detectors.__path__, str(tmp_path)])
    yield
    FACTS.pop("Counted", None)
    for name in ("counting", "again"):
        sys.modules.pop(f"{detectors.__name__}.{name}", None)
        vars(detectors).pop(name, None)


def program() -> list[Any]:
    """The tapes of a program that runs one backward."""
    x, y = floats(1, 2, 3), zeros()
    with wp.capturing(watcher=Witness()) as capture:
        with wp.Tape() as tape:
            wp.launch(square, 3, [x], [y])
        tape.backward(grads=ones(y))
    return capture.tapes


def test_it_gets_events() -> None:
    (tape,) = program()
    (fact,) = tape.facts
    assert type(fact) is fact_named("Counted") and fact.records == 1
    assert fact.site.file == __file__


def test_its_fact_travels_through_an_archive() -> None:
    (tape,) = program()
    store = Memory()
    text = codec.dumps(pack([tape], store)[0])
    assert '"class": "Counted"' in text
    fit(Archive, text)
    (again,) = unpack(codec.loads(Archive, text), store)
    assert again.facts == tape.facts
    result = check_tape(again)
    assert result.facts_of("Counted") == tuple(tape.facts) and result.facts_of("Stale") == ()
    for written in (codec.dumps(result), codec.brief(result)):
        assert codec.loads(TapeResult, written).facts == result.facts


def test_a_fact_is_of_a_class_that_a_detector_has_and_fits_it() -> None:
    (tape,) = program()
    text = codec.dumps(TapeResult(0, (), facts=tuple(tape.facts)))
    for there, instead, why in (
        ('"class": "Counted"', '"class": "Popen"', "expected a fact, got 'Popen'"),
        ('"class": "Counted"', '"class": ["Counted"]', "expected a fact, got a list of 1"),
        ('"class": "Counted"', '"kind": "Counted"', "expected a fact, got an object of 3"),
        ('"records": 1', '"records": "1"', r"facts\[0\].records: expected int, got '1'"),
        ('"records": 1', '"other": 1', "`records` is missing"),
    ):
        assert there in text
        with pytest.raises(codec.CodecError, match=why):
            codec.loads(TapeResult, text.replace(there, instead))
    with pytest.raises(Unfit):
        fit(TapeResult, text.replace('"class"', "class"))


def test_two_facts_have_two_names(tmp_path: Path) -> None:
    (tmp_path / "again.py").write_text(MODULE)
    with pytest.raises(TypeError, match="again has facts named Counted, too"):
        Witness()

"""A detector is one module: it gets events, and its fact travels; nothing else names it.

The example of CONTRIBUTING.md is the one that is added here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine as wp
from adtool import codec
from adtool.fitting import Unfit, fit
from engine.archive import Archive, pack, unpack
from engine.autograd import TapeResult, Witness, check_tape, fact_named
from engine.autograd.facts import FACTS, Overwritten, Write
from engine.autograd.watch import detectors, registry, witness
from engine.autograd.watch.detector import Detector
from engine.autograd.watch.followed import Followed
from engine.tape.backward import Pass
from tests.unit.archive.test_round_trip import Memory
from tests.unit.autograd.watch.programs import floats, square, zeros
from tests.unit.test_contributing import block_with

MODULE = block_with("python", "class ZeroSeeds(")
NAMES = ("zero_seeds", "another")


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A detector in a folder of its own, which is gone afterwards."""
    (tmp_path / "zero_seeds.py").write_text(MODULE)
    monkeypatch.setattr(detectors, "__path__", [*detectors.__path__, str(tmp_path)])
    yield
    FACTS.pop("ZeroSeeds", None)
    for name in NAMES:
        sys.modules.pop(f"{detectors.__name__}.{name}", None)
        vars(detectors).pop(name, None)


def program() -> list[Any]:
    """The tapes of a program that runs one backward."""
    x, y = floats(1, 2, 3), zeros()
    with wp.capturing(watcher=Witness()) as capture:
        with wp.Tape() as tape:
            wp.launch(square, 3, [x], [y])
        tape.backward(grads={y: np.zeros(3, np.float32)})
    return capture.tapes


def test_it_gets_events() -> None:
    (tape,) = program()
    (fact,) = tape.facts
    assert type(fact) is fact_named("ZeroSeeds") and fact.arrays == 1
    assert fact.site.file == __file__


def test_its_fact_travels_through_an_archive() -> None:
    (tape,) = program()
    store = Memory()
    text = codec.dumps(pack([tape], store)[0])
    assert '"class": "ZeroSeeds"' in text
    fit(Archive, text)
    (again,) = unpack(codec.loads(Archive, text), store)
    assert again.facts == tape.facts
    result = check_tape(again)
    assert result.facts_of("ZeroSeeds") == tuple(tape.facts) and result.facts_of("Stale") == ()
    for written in (codec.dumps(result), codec.brief(result)):
        assert codec.loads(TapeResult, written).facts == result.facts


def test_a_fact_is_of_a_class_that_a_detector_has_and_fits_it() -> None:
    (tape,) = program()
    text = codec.dumps(TapeResult(0, (), facts=tuple(tape.facts)))
    for there, instead, why in (
        ('"class": "ZeroSeeds"', '"class": "Popen"', "expected a fact, got 'Popen'"),
        ('"class": "ZeroSeeds"', '"class": ["ZeroSeeds"]', "expected a fact, got a list of 1"),
        ('"class": "ZeroSeeds"', '"kind": "ZeroSeeds"', "expected a fact, got an object of 3"),
        ('"arrays": 1', '"arrays": "1"', r"facts\[0\].arrays: expected int, got '1'"),
        ('"arrays": 1', '"other": 1', "`arrays` is missing"),
    ):
        assert there in text
        with pytest.raises(codec.CodecError, match=why):
            codec.loads(TapeResult, text.replace(there, instead))
    with pytest.raises(Unfit):
        fit(TapeResult, text.replace('"class"', "class"))


def test_two_facts_have_two_names(tmp_path: Path) -> None:
    (tmp_path / "another.py").write_text(MODULE)
    with pytest.raises(TypeError, match="another has facts named ZeroSeeds, too"):
        Witness()


def test_a_method_that_is_no_event_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Late\.begun is no event of detectors"):
        type("Late", (Detector,), {"begun": lambda self, tape, run: None})


SAID = Overwritten("outside", 0, "square", "x", "x", None, Write())


class _Teller(Detector):
    """Tells what another detector may tell, too. full: its memory runs out as a pass begins."""

    full = False

    def began(self, tape: Followed, run: Pass) -> None:
        if self.full:
            raise MemoryError
        tape.tell(SAID)


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Gives the facts after each pass of a tape of which an input was overwritten."""
    monkeypatch.setattr(witness, "detectors", lambda: [*registry.detectors(), _Teller])

    def run() -> Iterator[list[Any]]:
        x, y = floats(1, 2, 3), zeros()
        with wp.capturing(watcher=Witness()) as capture:
            with wp.Tape() as tape:
                wp.launch(square, 3, [x], [y])
            x.fill_(7.0)
            for _ in range(3):
                tape.backward(grads={y: np.ones(3, np.float32)})
                yield [f for f in capture.tapes[0].facts if isinstance(f, Overwritten)]

    return run()


def test_facts_of_one_class_may_come_from_several(passes: Iterator[list[Any]]) -> None:
    for n, found in enumerate(passes, 1):
        (seen,) = (f for f in found if f is not SAID)
        assert seen.count == 3 and len(found) == 1 + n  # those of the other are kept


def test_a_pass_that_there_was_no_memory_to_look_at_leads_to_no_facts(
    passes: Iterator[list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Teller, "full", True)
    assert next(passes) == []
    monkeypatch.setattr(_Teller, "full", False)
    assert {f.count for f in next(passes)} == {0, 3}
    assert len(list(passes)) == 1

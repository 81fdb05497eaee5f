"""Rules turn facts that were noted while a program ran into findings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from engine.autograd import (
    Broken,
    Cause,
    FunctionCheck,
    Handwritten,
    Overwritten,
    Recorded,
    Stale,
    TapeResult,
    WholeResult,
    Write,
)
from engine.diagnostics import Span
from tests.unit.adtool.test_rules import findings

Make = Callable[..., Any]


class TestFacts:
    """What was seen while the program ran."""

    READ, WROTE = Span("train.py", 9, 1, 9, 30), Span("train.py", 11, 1, 11, 30)

    @pytest.mark.parametrize(
        ("kind", "severity", "words"),
        [("wrong", "error", "is wrong because of it"),
         ("outside", "error", "is wrong because of it"),
         ("restored", "warning", "the tape saved 2 KiB, which its backward pass reads"),
         ("within", "warning", "by the launch that had read it"),
         ("unneeded", "note", "no gradient depends on the lost values")],
    )  # fmt: skip
    def test_overwrites(self, kind: Any, severity: str, words: str, session: Make) -> None:
        by = Write("forces", 4, self.WROTE)
        fact = Overwritten(
            kind, 3, "move", "f", "state.force", self.READ, by, (0, 1), (7, 2), 24, 1024, ("x",)
        )
        tapes = [TapeResult(i, (), facts=(fact,)) for i in range(2)]
        (found,) = findings("G003", session(*tapes))
        assert found.severity == severity and words in found.message
        assert found.message.startswith("`state.force` (argument `f` of kernel `move`) in launch 3")
        assert "(and 1 more launch)" in found.message
        assert "24 numbers, from [0, 1] to [7, 2]" in found.message
        assert (found.line, found.count) == (11, 2)

    def test_gradients_are_named_as_the_user_calls_the_arrays(self, session: Make) -> None:
        fact = Overwritten(
            "wrong", 3, "move", "f", "force", self.READ, Write("forces", 4, self.WROTE),
            gradients=("a", "b", "c"), passed=("mesh.x", "b", ""),
        )  # fmt: skip
        (found,) = findings("G003", session(TapeResult(0, (), facts=(fact,))))
        assert "the gradient by `mesh.x` (argument `a`), `b`, `c` is wrong" in found.message

    def test_what_a_recorded_function_read_is_to_blame_for_a_wrong_one(self, session: Make) -> None:
        by = Write("forces", 4, self.WROTE)
        fact = Overwritten("wrong", -1, "back", "", "b", self.READ, by, (0,), (3,), 4)
        told = Recorded("back", self.READ, self.READ, fact)
        for wrong in (True, False):
            check = FunctionCheck((told,), wrong, 1.0, 2.0)
            tapes = session(TapeResult(0, (), facts=(check,)))
            assert [f.line for f in findings("G003", tapes)] == [11] * wrong
            assert findings("G001", tapes) == []
        plain = FunctionCheck((replace(told, lost=None),), True, 1.0, 2.0)
        tapes = session(TapeResult(0, (), facts=(plain,)))
        assert findings("G003", tapes) == [] and len(findings("G001", tapes)) == 1

    def test_a_write_that_nobody_knows_of_is_told_at_the_read(self, session: Make) -> None:
        fact = Overwritten("outside", 3, "move", "x", "x", self.READ, Write(), (2,), (2,), 1)
        (found,) = findings("G003", session(TapeResult(0, (), facts=(fact,))))
        assert found.line == 9 and "a write to a NumPy view" in found.message
        assert "1 number, at [2]" in found.message
        for write, words in [
            (Write("cp", 2, self.WROTE, 1), "by kernel `cp` in launch 2 of tape 1 before"),
            (Write("copy", -1, self.WROTE, 1), "by `copy` of tape 1 before"),
            (Write("cp", -1, self.WROTE), "by `cp` outside of the tape before"),
            (Write("", -1, self.WROTE), "overwritten outside of the tape before"),
        ]:
            (found,) = findings(
                "G003", session(TapeResult(0, (), facts=(replace(fact, by=write),)))
            )
            assert found.line == 11 and words in found.message

    @pytest.mark.parametrize("kind", ["values", "twice", "passed on", "recompute", "saved"])
    def test_stale_gradients(self, kind: Any, session: Make) -> None:
        by = Write("square", 1, self.WROTE)
        fact = Stale(
            kind, "x", self.READ, self.WROTE, by, "what the tape says", 2, valid=True
        )  # fmt: skip
        (found,) = findings("G013", session(TapeResult(0, (), facts=(fact,))))
        assert (found.severity, found.line, found.count) == ("warning", 9, 2) and found.help
        assert found.notes == ("the earlier backward() is at train.py:11:1",)
        assert ("what the tape says" if kind == "saved" else "`x`") in found.message
        assert "moves" not in found.message
        assert ("x.grad.zero_()" in found.help) == (kind in ("values", "twice", "passed on"))
        assert ("or remove the second pass" in found.help) == (kind == "twice")
        assert ("between the two backward passes" in found.help) == ("x.grad" in found.help)

    @pytest.mark.parametrize("kind", ["values", "twice", "passed on"])
    def test_a_name_that_cannot_be_typed_is_no_cure(self, kind: Any, session: Make) -> None:
        fact = Stale(kind, "states[s]", self.READ, self.WROTE)
        (found,) = findings("G013", session(TapeResult(0, (), facts=(fact,))))
        assert "`states[s]`" in found.message
        assert "tape.zero()" in found.help and "states" not in found.help

    @pytest.mark.parametrize("kind", ["values", "twice", "passed on"])
    def test_one_pass_in_a_loop_is_not_two(self, kind: Any, session: Make) -> None:
        fact = Stale(kind, "x", self.READ, self.READ, valid=True)
        (found,) = findings("G013", session(TapeResult(0, (), facts=(fact,))))
        assert "before this backward() runs again: tape.zero(), or x.grad.zero_()" in found.help
        assert ("or run it only once" in found.help) == (kind == "twice")
        assert "two" not in found.help and "second" not in found.help
        (note,) = found.notes
        assert "the same call" in note and "train.py" not in note

    @pytest.mark.parametrize(("kind", "words"), [("values", "`x`"), ("passed on", "an array")])
    def test_stale_gradients_that_are_used(self, kind: Any, words: str, session: Make) -> None:
        read = Stale(kind, "x", self.READ, self.WROTE)
        used = replace(read, passes=0, used=True)
        tapes = session(TapeResult(0, (), facts=(read,)), TapeResult(1, (), facts=(used,)))
        (found,) = findings("G013", tapes)
        assert (found.severity, found.count) == ("error", 1)
        assert f", and the program moves {words} by it" in found.message

    @pytest.mark.parametrize("zeros", [(), ("x",)])
    def test_gradients_that_are_left_out(
        self, zeros: tuple[str, ...], session: Make, launch: Make
    ) -> None:
        hand = Handwritten("JAX", "custom_vjp", "soft_bwd", ("x",), zeros)
        (found,) = findings("G004", session([launch(0, by_hand=hand)]))
        assert f"`soft_bwd` gives {'zeros' if zeros else 'None'} for it" in found.message

    def test_what_follows_from_a_broken_path(self, session: Make, launch: Make) -> None:
        cause = Cause("no gradient", 1, "f", "a", self.READ, variable="v",
                      further=(("a", "w", self.WROTE),), silent=(0, 1))  # fmt: skip
        asks = "the launch has no floating-point input array with requires_grad=True"
        tape = TapeResult(
            0, tuple(launch(i, skipped=asks if i < 3 else "else") for i in range(4)),
            whole=WholeResult("fail", 1, 0.0, 1.0, cause=cause),
        )  # fmt: skip
        (found,) = findings("G004", session(tape))
        assert found.notes == ("these also need requires_grad: `w` at train.py:11:1",)
        gaps = findings("G012", session(tape))
        assert [(f.count, f.follows) for f in gaps] == [(2, "G004 0:1"), (1, ""), (1, "")]

    @pytest.mark.parametrize(
        ("kind", "words"),
        [("launch", "kernel `f`, which was launched outside of the tape"), ("copy", "`f`"),
         ("clone", "`f`"), ("cast", "`f`, which has no derivative"),
         ("graph", "kernel `f`, which a captured graph runs here"),
         ("command", "kernel `f`, which a recorded command runs here")],
    )  # fmt: skip
    def test_broken_ways(self, kind: Any, words: str, session: Make) -> None:
        fact = Broken(kind, "f", self.READ, ("x", "w"))
        (found,) = findings("G004", session(TapeResult(0, (), facts=(fact,))))
        assert f"the loss depends on `x` and `w` through {words}" in found.message
        assert found.severity == "error" and "stop_gradient" in found.help
        cause = Cause("no gradient", 3, "move", "x", self.READ)
        whole = WholeResult("fail", 1, 1.5, 2.0, 0.25, "", cause)
        said = findings("G004", session(TapeResult(0, (), whole=whole, facts=(fact,))))
        assert len(said) == 1  # at one place, it is said once

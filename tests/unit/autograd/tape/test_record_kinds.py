"""A kind of record is one class: tapes, checks, pictures and archives take it as it is.

The one defined here is known to nothing else. And a wrong `reverse` is seen by the check of a tape,
of this kind as of those of the engine: it runs what `Tape.backward` runs.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine as wp
from adtool import codec
from engine.archive import Archive, ArchiveError, pack, unpack
from engine.autograd import WholeResult, check_tape, jvp
from engine.runtime.transfer import store_linear
from engine.tape import records
from engine.tape.records import CopyRecord, FillRecord, LinearRecord, kind_of
from tests.unit.archive.test_round_trip import Memory
from tests.unit.autograd.tape.test_end_to_end import F, N, ramp, square, total, zeros
from tests.unit.runtime.launching import way

FACTOR = -1.5


@wp.struct
class Pair:
    a: float
    n: int
    v: wp.vec2


@wp.kernel
def read_pairs(p: wp.array(dtype=Pair), out: F):
    i = wp.tid()
    wp.atomic_add(out, 0, p[i].a * p[i].v[1] * p[i].v[1])


@wp.kernel
def write_pairs(x: F, p: wp.array(dtype=Pair)):
    i = wp.tid()
    p[i].a = x[i]
    p[i].v = wp.vec2(x[i], 2.0 * x[i])


class ScaleRecord(LinearRecord, kind="scale", constants=1):
    """`dest = factor * src`."""

    __slots__ = ()

    def forward(self, values: Any) -> Any:
        return self.numbers[0] * values

    def transpose(self, cotangents: Any) -> Any:
        return self.numbers[0] * cotangents


def scale(dest: Any, src: Any, factor: float = FACTOR) -> None:
    put = lambda: dest._put(factor * src._host())  # noqa: E731
    store_linear("scale", "scale", dest, src, put, (factor,))


def recorded() -> tuple[Any, Any, Any]:
    """A tape with records of each kind, what it reads, and what it computes."""
    x, y, z, loss = ramp(), zeros(), zeros(), zeros(1)
    with wp.Tape() as tape:
        scale(y, x)
        wp.launch(square, N, [y], [z])
        wp.copy(y, z)
        z.zero_()
        wp.launch(total, N, [y], [loss])
        wp.launch(total, N, [z], [loss])
    return tape, x, loss


def whole(tape: Any) -> WholeResult:
    found = check_tape(tape).whole
    assert found is not None
    return found


def captured() -> Any:
    with wp.capturing() as capture:
        tape, _, loss = recorded()
        tape.backward(loss)
    (found,) = capture.tapes
    return found


def archived() -> tuple[Any, Memory]:
    store = Memory()
    archive, _ = pack([captured()], store)
    return codec.loads(Archive, codec.dumps(archive)), store


@pytest.mark.parametrize("taped", [False, True])
@pytest.mark.parametrize("native", [False, True])
def test_a_graph_runs_it_as_it_is(
    taped: bool, native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of a graph may be part of a native call; this must not become one."""
    with way(monkeypatch, "native" if native else False):
        x, y, z = ramp(), zeros(), zeros()

        def run() -> None:
            scale(y, x)
            wp.copy(z, y)
            wp.copy(y, z)

        with wp.ScopedCapture() as capture:
            if taped:
                tape = wp.Tape()
                with tape:
                    run()
                tape.backward(grads={y: wp.ones_like(y)})
            else:
                run()
        for _ in range(40):
            x.grad.zero_()
            y.zero_()
            wp.capture_launch(capture.graph)
            assert np.array_equal(y.numpy(), np.float32(FACTOR) * x.numpy())
            assert not taped or np.array_equal(x.grad.numpy(), np.full(N, FACTOR, np.float32))


def test_it_runs_backward() -> None:
    tape, x, loss = recorded()
    tape.backward(loss)
    at = x.numpy().astype(np.float64)
    expected = 2 * FACTOR**2 * at * np.cos((FACTOR * at) ** 2)
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-5)


def test_it_runs_forward_with_tangents() -> None:
    x, y = ramp(), zeros()
    with wp.Tape() as tape:
        scale(y, x)
    found = jvp(tape, tangents={x: np.ones(N, np.float32)})
    assert found[y].list() == [FACTOR] * N


def test_tangents_and_gradients_of_what_overlaps() -> None:
    x, y = ramp(), zeros()
    seeds = np.arange(1, N + 1, dtype=np.float32)
    with wp.Tape() as tape:
        wp.copy(y, x)
        scale(y[::-1], y)
    found = jvp(tape, tangents={x: seeds})
    assert found[y].list() == (FACTOR * seeds[::-1]).tolist()
    tape.backward(grads={y: wp.array(seeds, dtype=float)})
    assert x.grad.list() == (FACTOR * seeds[::-1]).tolist()


def test_it_is_checked_live_and_captured() -> None:
    for tape in (recorded()[0], captured()):
        assert whole(tape).verdict == "pass"


def test_it_is_in_pictures() -> None:
    tape, x, loss = recorded()
    assert "scale" in tape.visualize(array_labels={x: "x", loss: "loss"})


def test_it_goes_through_archives() -> None:
    archive, store = archived()
    (again,) = unpack(archive, store)
    record = again.records[0]
    assert type(record) is ScaleRecord and record.numbers == (FACTOR,)
    assert codec.dumps(check_tape(again)) == codec.dumps(check_tape(captured()))
    assert whole(again).verdict == "pass"
    assert pack([again], store)[0] == archive


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"kind": "os.system"}, "no kind of operation 'os.system'"),
        ({"arguments": ()}, "a scale with 0 numbers"),
        ({"arrays": (0,)}, "a scale of 1 arrays"),
    ],
)
def test_an_archive_of_others_is_refused(changed: dict[str, Any], told: str) -> None:
    archive, store = archived()
    (tape,) = archive.tapes
    wrong = replace(tape, records=(replace(tape.records[0], **changed), *tape.records[1:]))
    with pytest.raises(ArchiveError, match=told):
        unpack(replace(archive, tapes=(wrong,)), store)


def test_no_kind_takes_the_name_of_another() -> None:
    with pytest.raises(TypeError, match="already"):
        type("Other", (LinearRecord,), {}, kind="copy")
    assert kind_of("copy") is CopyRecord and kind_of("scale") is ScaleRecord


def test_a_kind_is_found_by_the_name_of_its_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing else is loaded for the name of a kind."""
    text = (
        "from engine.tape.records.linear import LinearRecord\n"
        "class Halved(LinearRecord, kind='halved_on_trial'): __slots__ = ()\n"
    )
    (tmp_path / "halved_on_trial.py").write_text(text)
    (tmp_path / "not_a_kind.py").write_text("")
    monkeypatch.setattr(records, "__path__", [*records.__path__, str(tmp_path)])
    monkeypatch.setattr(
        pkgutil, "iter_modules", lambda _, f=pkgutil.iter_modules: f([str(tmp_path)])
    )
    assert kind_of("halved_on_trial").__name__ == "Halved"
    for name in ("not_a_kind", "not_a_kind.os", "os", "engine", "", "..linear"):
        with pytest.raises(KeyError):
            kind_of(name)


# ---- wrong ones


def forgets(self: Any, restored: Any = ()) -> None:
    """Passes nothing on, and leaves the gradient of what was overwritten."""


def keeps(self: Any, restored: Any = ()) -> None:
    """Leaves the gradient of what was overwritten."""
    kept = self.dest.grad.numpy().copy()
    LinearRecord.reverse(self, restored)
    self.dest.grad.assign(kept)


def doubles(self: Any, restored: Any = ()) -> None:
    """Passes on twice as much."""
    if self.src is not None:
        self.dest.grad.assign(2 * self.dest.grad.numpy())
    LinearRecord.reverse(self, restored)


WRONG = [
    (kind, wrong)
    for kind in (ScaleRecord, CopyRecord, FillRecord)
    for wrong in (forgets, keeps, doubles)
    if not (kind is FillRecord and wrong is doubles)
]


@pytest.fixture(params=WRONG, ids=lambda x: f"{x[0].kind}-{x[1].__name__}")
def wrong(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of what is wrong now."""
    kind, reverse = request.param
    monkeypatch.setattr(kind, "reverse", reverse, raising=False)
    yield "zero_" if kind is FillRecord else kind.kind


def test_a_wrong_reverse_is_found(wrong: str) -> None:
    archive, store = archived()
    for tape in (recorded()[0], captured(), *unpack(archive, store)):
        found = whole(tape)
        assert found.verdict == "fail" and found.cause is not None
        assert (found.cause.kind, found.cause.kernel) == ("unknown", wrong)


def test_a_wrong_transpose_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScaleRecord, "transpose", lambda self, cotangents: cotangents)
    cause = whole(captured()).cause
    assert cause is not None and (cause.kind, cause.kernel) == ("unknown", "scale")


def test_a_gradient_that_reaches_no_leaf_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was there before the fill is no leaf: the whole gradient is right all the same."""
    monkeypatch.setattr(FillRecord, "reverse", forgets, raising=False)
    x, y, loss = ramp(), zeros(), zeros(1)
    with wp.Tape() as tape:
        y.fill_(2.0)
        wp.launch(total, N, [y], [loss])
        wp.launch(total, N, [x], [loss])
    cause = whole(tape).cause
    assert cause is not None and (cause.kind, cause.kernel) == ("unknown", "fill_")


def test_a_tape_that_cannot_be_replayed_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, z = ramp(), zeros(), zeros()
    with wp.Tape() as tape:
        wp.copy(y, x)
        tape.record_func(lambda: None, [y, z])
    assert whole(tape).verdict == "skipped"
    monkeypatch.setattr(CopyRecord, "reverse", doubles, raising=False)
    found = whole(tape)
    assert found.verdict == "fail" and found.cause is not None
    assert (found.cause.kind, found.cause.kernel) == ("unknown", "copy")
    assert found.ad > found.oracle


def test_constants_that_are_not_finite_are_no_mismatch() -> None:
    x, y, loss = ramp(), zeros(), zeros(1)
    with wp.Tape() as tape:
        scale(y, x, np.inf)
        wp.launch(total, N, [y], [loss])
    assert whole(tape).verdict == "inconclusive"


def test_another_kind_of_the_same_name_makes_another_tape() -> None:
    x, y = ramp(), zeros()
    one, other = (kind_of(k)("same", y, x, None, None, n).alike(id)
                  for k, n in (("copy", ()), ("scale", (FACTOR,))))  # fmt: skip
    assert one != other


def test_copies_of_structs_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    x, loss = ramp(), zeros(1)
    p, q = (wp.zeros(N, dtype=Pair, requires_grad=True) for _ in range(2))
    with wp.Tape() as tape:
        wp.launch(write_pairs, N, [x], [p])
        wp.copy(q, p)
        wp.launch(read_pairs, N, [q], [loss])
    assert whole(tape).verdict == "pass"
    monkeypatch.setattr(CopyRecord, "reverse", doubles, raising=False)
    assert whole(tape).verdict == "fail"


def test_copies_of_widths_and_overlaps_pass() -> None:
    x, wide, loss = ramp(2 * N), wp.zeros(2 * N, dtype=wp.float64, requires_grad=True), zeros(1)
    y = zeros(2 * N)
    with wp.Tape() as tape:
        wp.copy(wide, x)
        wp.copy(y, wide)
        wp.copy(y, y, dest_offset=1, count=N)
        wp.copy(y[::-1], y)
        wp.launch(total, 2 * N, [y], [loss])
    assert whole(tape).verdict == "pass"

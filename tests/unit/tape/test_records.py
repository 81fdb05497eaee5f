"""What each kind of record says of itself, captured or not, and that nobody asks for its class."""

import ast
from pathlib import Path

import numpy as np
import pytest

import engine as wp
from engine.archive.unpack import ArchivedLaunch
from engine.tape.outline import key_of
from engine.tape.records import CopyRecord, FillRecord, FunctionRecord, LaunchRecord
from engine.tape.records.captured import BarredLaunch
from engine.tape.records.foreign import ForeignRecord, Stretch
from engine.tape.records.record import Record
from tests.unit.tape.kernels import double

ROOT = Path(__file__).parents[3]


class Doubling(Stretch):
    """Twice its input, without a framework."""

    name, framework, span = "doubling", "none", None

    def run(self, values):
        return [2 * x for x in values]

    def remember(self):
        pass

    def vjp(self, values, cotangents, wanted, own):
        return [2 * c for c in cotangents]

    def jvp(self, values, tangents):
        return [2 * t for t in tangents]


@pytest.fixture(scope="module")
def records():
    x, y = (wp.ones(3, dtype=float, requires_grad=True) for _ in range(2))
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y])
        wp.copy(y, x)
        y.zero_()
        tape.record_func(lambda: None, [x, y])
    return [*tape.records, ForeignRecord(Doubling(), [x], [y], None)]


KINDS = ("launch", "copy", "write", "function", "function")
CLASSES = (LaunchRecord, CopyRecord, FillRecord, FunctionRecord, ForeignRecord)


def test_each_operation_has_a_class(records):
    assert tuple(map(type, records)) == CLASSES


@pytest.mark.parametrize("k", range(len(CLASSES)))
def test_captured_records_say_what_the_others_say(records, k):
    r = records[k]
    captured = r.captured()
    assert isinstance(captured, CLASSES[k])
    for what in ("name", "site", "kernel", "dim", "definition", "repeatable"):
        assert getattr(captured, what) == getattr(r, what), what
    count = len(r.listed)
    assert captured.describe(count) == r.describe(count)
    assert r.describe(count).kind == KINDS[k]
    assert (captured.launch is None) == (r.launch is None) == (k > 0)
    assert (captured.function is None) == (r.function is None) == (k != 3)
    assert (captured.copied is None) == (r.copied is None) == (k != 1)
    if r.function is None:  # which may hold arrays, and is let go
        assert [key_of(a) for a in captured.arrays] == [key_of(a) for a in r.arrays]
        assert captured.alike(key_of) == r.alike(key_of)
    assert not captured.is_ready()


def test_what_gradients_flow_through(records):
    launch, copy, fill, function, foreign = records
    x, y = copy.src, copy.dest
    for r, sources, stored in (
        (launch, [x], [y]), (copy, [x], [y]), (fill, [], [y]), (function, [x, y], []),
        (foreign, [x], [y]),
    ):  # fmt: skip
        assert list(map(id, r.sources)) == list(map(id, sources)), r.name
        assert list(map(id, r.stored)) == list(map(id, stored)), r.name
    assert [r.passes_gradient(y) for r in records] == [True, True, False, False, True]
    assert [[id(o.of) for o in r.operands()] for r in records] == [
        [id(x)], [id(x)], [], [], [id(x)],
    ]  # fmt: skip
    assert [id(a) for a in function.declared] == [id(x), id(y)]
    assert not any(r.declared for r in records if r is not function)


def _classes(of):
    return {of}.union(*map(_classes, of.__subclasses__()))


def _asked(tree):
    """The names of the classes that a module's code compares with."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in ("isinstance", "issubclass") and len(node.args) == 2:
                yield from (x.id for x in ast.walk(node.args[1]) if isinstance(x, ast.Name))
        elif isinstance(node, (ast.Compare, ast.Dict)):
            parts = node.comparators if isinstance(node, ast.Compare) else node.keys
            yield from (x.id for x in parts if isinstance(x, ast.Name))


def test_only_records_know_their_classes():
    """Whoever needs to know something of a record asks it: see `engine.tape.records.record`."""
    classes = _classes(Record)
    assert classes > {*CLASSES, BarredLaunch, ArchivedLaunch}
    names = {c.__name__ for c in classes}
    for folder in ("engine", "adtool"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "records" in path.parts:
                continue
            found = names.intersection(_asked(ast.parse(path.read_text(encoding="utf-8"))))
            assert not found, f"{path.relative_to(ROOT)} asks whether a record is {found}"


def test_copies_add_gradients_where_numpy_raises() -> None:
    x = wp.array([1.0], dtype=float, requires_grad=True)
    y = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.copy(y, x)
    x.grad.fill_(3e38)
    with np.errstate(all="raise"):
        tape.backward(grads={y: np.array([3e38], np.float32)})
    assert np.isinf(x.grad.numpy()).all()

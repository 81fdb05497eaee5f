# ruff: noqa: F821, F841
"""Reads before assignment, against runs of every path in Python."""

from __future__ import annotations

import ast
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine as wp
from engine.frontend import lower_function, lower_kernel
from engine.frontend.parsing.definite_assignment import Facts, unassigned_reads
from engine.frontend.parsing.desugar import desugar
from engine.ir.nodes import Set, callees, walk
from engine.lang.types import FLOAT32

# ---- random programs, whose tests are answered in every way

_NAMES = st.sampled_from(["a", "b"])
_READ = _NAMES.map("use({0})".format)
_TEST: st.SearchStrategy[str] = st.recursive(
    st.one_of(
        st.just("choose()"), _READ, st.just("choose()"),
        _NAMES.map("pick({0} := 1)".format), st.sampled_from(["True", "False"]),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
            "({0[0]} {0[1]} {0[2]})".format
        ),
        inner.map("(not {0})".format),
        st.tuples(inner, inner, inner).map("({0[0]} if {0[1]} else {0[2]})".format),
    ),
    max_leaves=3,
)  # fmt: skip
_SIMPLE = st.one_of(
    _NAMES.map("{0} = 1".format),
    _READ,
    st.tuples(_NAMES, _NAMES).map("{0[0]} = use({0[1]})".format),
    _NAMES.map("{0} += use({0})".format),
    st.just("(a, b) = 1, 2"),
    _TEST.map("pick({0})".format),
)
_LEAVE = st.sampled_from(["break", "continue", "return"])


@st.composite
def blocks(draw: Any, depth: int = 2, loop: bool = False) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["simple", "simple", "if", "for", "while"]))
        if kind == "simple" or depth == 0:
            lines.append(draw(_SIMPLE))
            continue
        inside = blocks(depth=depth - 1, loop=loop or kind != "if")
        body = ["    " + x for x in (*(["step()"] if kind != "if" else []), *draw(inside))]
        if kind == "if":
            lines += [f"if {draw(_TEST)}:", *body]
            if draw(st.booleans()):
                lines += ["else:", *("    " + x for x in draw(inside))]
        elif kind == "for":
            head = draw(st.sampled_from(["for a in trips():", "for i in trips():"]))
            lines += [head, *body]
        else:
            lines += [f"while {draw(_TEST)}:", *body]
    if draw(st.integers(0, 3)) == 0:
        leave = draw(_LEAVE)
        lines.append(leave if loop or leave == "return" else "return")
    return lines


class Stop(Exception):
    """The answers are used up, or a loop goes on without asking."""


class Runs:
    """Runs a program with every series of answers, up to a length."""

    def __init__(self, text: str) -> None:
        self.code = compile(text, "<paths>", "exec", dont_inherit=True)
        self.failed: set[int] = set()  # lines of reads without a value
        self.read: set[int] = set()  # lines of reads with one
        self.complete = True
        pending: list[tuple[int, ...]] = [()]
        for _ in range(300):
            if not pending:
                return
            answers = pending.pop(0)
            if self.run(answers):
                continue
            if len(answers) < 9:
                pending += [(*answers, 0), (*answers, 1)]
            else:
                self.complete = False
        self.complete = self.complete and not pending

    def run(self, answers: tuple[int, ...]) -> bool:
        """One run. False where it asks for more answers."""
        left = iter(answers)
        steps = iter(range(30))
        asked = False

        def answer(_: object = None) -> bool:
            nonlocal asked
            for found in left:
                return bool(found)
            asked = True
            raise Stop

        def use(value: int) -> bool:
            self.read.add(sys._getframe(1).f_lineno)
            return answer()

        def step() -> None:
            if next(steps, None) is None:
                raise Stop

        space: dict[str, Any] = {
            "choose": answer, "pick": answer, "use": use, "step": step,
            "trips": lambda: range(2 * answer()),
        }  # fmt: skip
        exec(self.code, space)
        # Python 3.11 runs two instructions of code that ran before as one, and then names the line
        # of the first one, where the second one fails; not so while it traces.
        traced = sys.gettrace()
        sys.settrace(lambda *event: None)
        try:
            space["f"]()
        except Stop:
            self.complete &= asked
            return not asked
        except UnboundLocalError as error:
            assert error.__traceback__ is not None and error.__traceback__.tb_next is not None
            self.failed.add(error.__traceback__.tb_next.tb_lineno)
        finally:
            sys.settrace(traced)
        return True


def flagged(text: str) -> tuple[dict[int, bool], set[str]]:
    """Lines with reads that may have no value, whether they certainly have none, and the names."""
    (tree,) = ast.parse(text).body
    assert isinstance(tree, ast.FunctionDef)
    desugar(tree, frozenset())
    facts = Facts()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            facts.tests[id(node), ()] = node.value  # as lowering finds out
    out: dict[int, bool] = {}
    reads = unassigned_reads(tree, {"a", "b", "i"}, facts)
    for found in reads:
        out[found.node.lineno] = out.get(found.node.lineno, False) or found.certain
    return out, {found.node.id for found in reads}


@settings(max_examples=300, deadline=None, database=None)
@given(blocks())
def test_paths_of_python_are_the_oracle(lines: list[str]) -> None:
    text = "def f():\n" + "".join(f"    {x}\n" for x in [*lines, "a = b = 0"])
    (found, names), runs = flagged(text), Runs(text)
    assert runs.failed <= set(found)  # nothing is missed
    # Nor is anything said for nothing, but behind a read that always fails, and where one name
    # has a value whenever another one has.
    if runs.complete and not any(found.values()) and len(names) < 2:
        assert runs.failed == set(found)
    # One line may hold several reads, of which only some are certain.
    certain = {line for line, sure in found.items() if sure and lines[line - 2].count("use") == 1}
    assert not certain & runs.read


# ---- programs without a false alarm, and with


@wp.func
def branches(x: float, n: int):
    if x > 1.0:
        y = 1.0
    elif x > 0.0:
        y = 2.0
    else:
        y = 3.0
    for k in range(3):  # runs for certain
        z = float(k)
    while True:
        n -= 1
        if n < 0:
            w = 1.0
            break
        if n == 3:
            return 0.0
    if x > 5.0:
        return y
    else:
        v = 2.0
    if x > 0.0 and (u := y * 2.0) > 1.0:
        v += u
    if not (x > 0.0 and (t := y * 2.0) > 1.0):
        return v
    return v + w + z + t


FLAG = True
WIDTH = 2


@wp.func
def constants(x: float):
    if FLAG:
        y = x
    if wp.static(WIDTH > 1):
        z = y
    for k in range(WIDTH):
        if wp.static(k == 0):
            total = z
        else:
            total += z
    if not FLAG:
        y = later  # never lowered
    s: float
    later = 1.0
    return total + s + later


@pytest.mark.parametrize("function", [branches, constants], ids=lambda f: f.__name__)
def test_no_false_alarm(function: Any) -> None:
    kinds = [FLOAT32, wp.int32.__ir_type__][: len(function.func.__code__.co_varnames)]
    count = function.func.__code__.co_argcount
    assert lower_function(function, kinds[:count]).unassigned == ()


@wp.func
def one_branch(x: float):
    if x > 0.0:
        y = x
    return y * y


@wp.func
def loop_of_unknown_length(n: int):
    for i in range(n):
        last = i
    return last


@wp.func
def loop_left_early(n: int):
    while True:
        if n > 3:
            break
        last = n
        n += 1
    return last


@wp.func
def first_iteration(n: int):
    total = 0
    for i in range(n):
        if i > 0:
            total += before
        before = i
    return total


@wp.func
def short_circuit(x: float):
    if x > 0.0 or (y := x) < -1.0:
        return y
    return x


MAY = [one_branch, loop_of_unknown_length, loop_left_early, first_iteration, short_circuit]


@pytest.mark.parametrize("function", MAY, ids=lambda f: f.__name__)
def test_reads_that_may_have_no_value(function: Any) -> None:
    t = FLOAT32 if "x" in function.func.__code__.co_varnames else wp.int32.__ir_type__
    made = lower_function(function, [t])
    (read,) = made.unassigned
    lines = Path(__file__).read_text().splitlines()
    assert lines[read.span.line - 1][read.span.col - 1 :].startswith(read.name)
    # What a run could watch: the variable behind the name, which the IR sets somewhere.
    (variable,) = read.variables
    assert any(isinstance(s, Set) and s.dst.name == variable for s in walk(made.body))


@wp.kernel
def after_a_return(a: wp.array(dtype=float)):
    if a[0] > 0.0:
        y = 1.0
        return
    a[1] = y


@wp.kernel
def before_the_assignment(a: wp.array(dtype=float)):
    for i in range(3):
        if a[i] > 0.0:
            a[i] = y
            continue
    y = 1.0


@pytest.mark.parametrize("kernel", [after_a_return, before_the_assignment], ids=lambda k: k.key)
def test_reads_that_certainly_have_no_value_are_refused(kernel: Any) -> None:
    with pytest.raises(wp.KernelError, match="`y` is read before it has a value") as caught:
        lower_kernel(kernel.func)
    assert [d.code for d in caught.value.diagnostics] == ["E102"]


def test_a_warning_comes_once_and_has_a_place() -> None:
    def make(k: float) -> Any:
        @wp.func
        def f(x: float):
            if x > k:
                y = x
            return y

        @wp.kernel
        def kernel(a: wp.array(dtype=float)):
            a[0] = f(a[0])

        return kernel

    told: list[warnings.WarningMessage] = []
    a = wp.array([2.0], dtype=float)
    for k in (1.0, 2.0, 3.0):
        kernel = make(k)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            for _ in range(2):
                wp.launch(kernel, dim=1, inputs=[a])
        told += found
    (one,) = told
    assert one.filename == __file__ and "`y` may be read before it has a value" in str(one.message)
    assert "return y" in Path(__file__).read_text().splitlines()[one.lineno - 1]
    assert len(callees(kernel.ir)) == 1


def test_warnings_can_be_errors() -> None:
    @wp.kernel
    def kernel(a: wp.array(dtype=float)):
        if a[0] > 0.0:
            y = 1.0
        a[1] = y

    a = wp.zeros(2)
    for _ in range(2):
        with pytest.raises(UserWarning, match="`y` may be read"):
            wp.launch(kernel, dim=1, inputs=[a])
    assert a.numpy().tolist() == [0.0, 0.0]

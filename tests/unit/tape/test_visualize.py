"""`Tape.visualize`: what is in the picture, what is folded, names, and text that is safe."""

import re
import shutil
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest

import engine as wp
from engine import TapeError
from tests.unit.tape.kernels import double, source, total


@wp.kernel
def plus(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float)):
    i = wp.tid()
    c[i] = a[i] + b[i]


@wp.struct
class State:
    q: wp.array(dtype=float)
    v: wp.array(dtype=float)


@wp.kernel
def move(s: State, t: State):
    i = wp.tid()
    t.q[i] = s.q[i] + s.v[i]
    t.v[i] = s.v[i]


def array(n=3, grad=True):
    return wp.zeros(n, dtype=float, requires_grad=grad)


def nodes(text):
    """Attributes of the ellipses, by their first line."""
    found = {}
    for line in text.splitlines():
        hit = re.match(r'\s*(a\d+) \[label="([^\\"]*)', line)
        if hit:
            found[hit[2]] = line
    return found


def edges(text):
    """Pairs of labels of nodes: arrays by their names, operations by their kernels."""
    names = {line.split()[0]: label for label, line in nodes(text).items()}
    for line in text.splitlines():
        hit = re.match(r"\s*(op\d+) \[label=<.*?<B>(.*?)</B>", line)
        if hit:
            names[hit[1]] = hit[2]
    pairs = re.findall(r"^\s*(\w+)(?::\w+)? -> (\w+)(?::\w+)?", text, re.MULTILINE)
    return {(names[a], names[b]) for a, b in pairs}


def boxes(text):
    return re.findall(r"<B>(.*?)</B>", text)


def test_the_example_of_the_reference(capsys):
    tape = wp.Tape()
    a, b = array(1, False), array(1)
    c = array(1, False)
    d = c
    e, result = array(1), array(1)
    with tape:
        wp.launch(plus, 1, [b, e], [a])
        with wp.ScopedTimer("Adder"):
            tape.record_scope_begin("Custom Scope")
            wp.launch(plus, 1, [a, b], [c])
            tape.record_scope_end()
            wp.launch(plus, 1, [d, a], [result])
    text = tape.visualize(array_labels={a: "a", b: "b", c: "c", e: "e", result: "result"})
    found = nodes(text)
    assert set(found) == {"a", "b", "c", "e", "result"}
    green = {name for name, line in found.items() if 'fillcolor="#b7e1a1"' in line}
    assert green == {"b", "e", "result"}
    assert boxes(text) == ["plus"] * 3
    assert edges(text) == {
        ("b", "plus"), ("e", "plus"), ("plus", "a"), ("a", "plus"), ("plus", "c"), ("c", "plus"),
        ("plus", "result"),
    }  # fmt: skip
    assert text.index("label=Adder") < text.index('label="Custom Scope"')
    flat = tape.visualize(ignore_graph_scopes=True)
    assert "cluster" not in flat
    assert "Adder took" in capsys.readouterr().out


def test_a_name_stands_once_and_arrays_tell_their_types():
    x, y = source(), array()
    with wp.Tape() as tape:
        for _ in range(16):
            wp.launch(double, 3, [x], [y])
    text = tape.visualize(array_labels={x: "x", y: "y"})
    assert text.count("double") == 1
    assert "repeated 16x" in text
    assert 'tooltip="array: dtype=float32, shape=(3), requires_grad=True"' in nodes(text)["y"]


def test_the_same_tape_gives_the_same_text_and_file(tmp_path):
    def run():
        x, y = source(), array()
        with wp.Tape() as tape:
            wp.launch(double, 3, [x], [y])
        return tape.visualize(tmp_path / "tape.dot", array_labels={x: "x", y: "y"})

    first = run()
    assert (tmp_path / "tape.dot").read_text(encoding="utf-8") == first
    keep = [source() for _ in range(7)]  # other addresses
    assert run() == first
    assert len(keep) == 7


def test_names_come_from_variables_structs_and_containers():
    x, bodies = source(), [array(), array()]
    state, after = State(), State()
    state.q, state.v, after.q, after.v = x, array(), array(), bodies[0]
    model = SimpleNamespace(loss=array(1))
    own = {"energy": array(1)}
    with wp.Tape() as tape:
        wp.launch(move, 3, [state], [after])
        wp.launch(plus, 3, [after.q, after.v], [bodies[1]])
        wp.launch(total, 3, [bodies[1]], [own["energy"]])
    found = set(nodes(tape.visualize(simplify_graph=False)))
    assert found == {"state.q", "state.v", "after.q", "bodies[0]", "bodies[1]", "own['energy']"}
    short = set(nodes(tape.visualize(simplify_graph=False, choose_longest_node_name=False)))
    assert short == {"x", "state.v", "after.q", "after.v", "bodies[1]", "own['energy']"}
    assert model.loss.shape == (1,)


def test_arrays_without_a_variable_are_named_by_the_parameter():
    with wp.Tape() as tape:
        wp.launch(double, 3, [source()], [array()])
    assert set(nodes(tape.visualize())) == {"x", "y"}


def test_a_loop_over_the_same_arrays_is_drawn_once():
    x, y, z = source(), array(), array()
    with wp.Tape() as tape:
        for _ in range(16):
            wp.launch(double, 3, [x], [y])
            wp.launch(plus, 3, [x, y], [z])
    text = tape.visualize()
    assert 'label="repeated 16x"' in text
    assert sorted(boxes(text)) == ["double", "plus"]
    assert set(nodes(text)) == {"x", "y", "z"}
    whole = tape.visualize(simplify_graph=False)
    assert "repeated" not in whole
    assert len(boxes(whole)) == 32


def test_a_loop_over_new_arrays_merges_them():
    states = [source(), *(array() for _ in range(16))]
    loss = array(1)
    with wp.Tape() as tape:
        for i in range(16):
            wp.launch(double, 3, [states[i]], [states[i + 1]])
        wp.launch(total, 3, [states[16]], [loss])
    text = tape.visualize()
    assert "repeated 16x" in text
    chain = "states[0] \u2026 states[16]"
    assert set(nodes(text)) == {chain, "loss"}
    assert "17 arrays" in nodes(text)[chain]
    assert edges(text) == {
        (chain, "double"), ("double", chain), (chain, "total"), ("total", "loss")
    }  # fmt: skip


def test_buffers_that_take_turns_stay_apart():
    front, back = source(), array()
    pair = (front, back)
    with wp.Tape() as tape:
        for i in range(20):
            wp.launch(double, 3, [pair[i % 2]], [pair[(i + 1) % 2]])
    text = tape.visualize(array_labels={front: "front", back: "back"})
    assert "repeated 10x" in text
    assert boxes(text) == ["double"] * 2
    assert set(nodes(text)) == {"front", "back"}


def test_loops_within_loops_and_scopes():
    x, y, z = source(), array(), array()
    with wp.Tape() as tape:
        for _ in range(6):
            with wp.ScopedTimer("step", print=False):
                for _ in range(5):
                    wp.launch(double, 3, [x], [y])
                wp.launch(plus, 3, [x, y], [z])
    text = tape.visualize()
    assert "repeated 6x" in text
    assert "repeated 5x" in text
    assert "label=step" in text
    assert sorted(boxes(text)) == ["double", "plus"]


def test_no_repetition_no_frame():
    x, y, z = source(), array(), array()
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y])
        wp.launch(plus, 3, [x, y], [z])
        wp.launch(double, 2, [x], [y])
    text = tape.visualize()
    assert "repeated" not in text
    assert len(boxes(text)) == 3


def test_two_layers_are_no_loop():
    x, h, y = source(), array(), array()
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [h])
        wp.launch(double, 3, [h], [y])
    text = tape.visualize()
    assert "repeated" not in text
    assert set(nodes(text)) == {"x", "h", "y"}


def test_read_only_arrays_are_hidden_unless_tracked():
    x, weight, y = source(), source(), array()
    with wp.Tape() as tape:
        wp.launch(plus, 3, [x, weight], [y])
    assert set(nodes(tape.visualize(hide_readonly_arrays=True))) == {"y"}
    text = tape.visualize(
        hide_readonly_arrays=True, track_inputs=[x], track_outputs=[y],
        track_input_names=["position"], track_output_names=["result"],
    )  # fmt: skip
    assert set(nodes(text)) == {"position", "result"}
    assert "(input)" in nodes(text)["position"]
    assert "(output)" in nodes(text)["result"]


def test_a_tracked_array_that_is_not_on_the_tape_stands_alone():
    x, y, lost = source(), array(), array()
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y])
    text = tape.visualize(track_inputs=[lost])
    assert "lost" in nodes(text)
    assert not any("lost" in pair for pair in edges(text))


def test_copies_views_and_functions():
    x, y, z = source(6), array(3), array(3)
    with wp.Tape() as tape:
        wp.launch(double, 3, [x[0:3]], [y])
        wp.copy(z, y)
        z.zero_()
        tape.record_func(lambda: None, [x])
    text = tape.visualize()
    assert {"x", "y", "z", "view of x"} <= set(nodes(text))
    assert ("x", "view of x") in edges(text)
    assert ("copy", "z") in edges(text)
    assert ("zero_", "z") in edges(text)
    assert ("x", "&lt;lambda&gt;") in edges(text)


@pytest.mark.parametrize("direction", ["LR", "RL", "TB", "BT"])
def test_direction(direction):
    x, y = source(), array()
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y])
    text = tape.visualize(graph_direction=direction)
    assert f"rankdir={direction}" in text
    assert ("x", "double") in edges(text)


def test_strings_are_escaped():
    x, y = source(), array()
    bad = 'x"]; evil [label="\\N <b>&'
    with wp.Tape() as tape:
        tape.record_scope_begin('</TABLE>"\n\x1b[31m')
        wp.launch(double, 3, [x], [y])
        tape.record_scope_end()
    text = tape.visualize(array_labels={x: bad, y: "<b>y</b>"})
    assert "\x1b" not in text
    assert 'evil [label=\\"\\\\N' in text
    if shutil.which("dot"):
        done = subprocess.run(
            ["dot", "-Tplain"], input=text, capture_output=True, text=True, check=True
        )
        assert not done.stderr
        drawn = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("node")]
        assert sorted(drawn) == ["a0", "a1", "op0"]


@pytest.mark.parametrize(
    "options",
    [
        {"graph_direction": "XX"},
        {"track_inputs": [1]},
        {"track_inputs": [], "track_input_names": ["x"]},
        {"array_labels": {1: "x"}},
        {"array_labels": ["x"]},
        {"filename": 3},
        {"filename": -1},
        {"filename": b"x.dot"},
        {"filename": "no/such/folder/x.dot"},
        {"filename": "nul\0l"},
        {"graph_direction": np.zeros(2)},
        {"track_outputs": 3},
        {"track_inputs": [], "track_input_names": 3},
        {"simplify_graph": np.zeros(2)},
        {"ignore_graph_scopes": np.zeros(2)},
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(options):
    with pytest.raises(TapeError, match="E401") as error:
        wp.Tape().visualize(**options)
    assert error.value.diagnostics[0].span.file == __file__
    assert list(options)[-1] in str(error.value)


def test_an_empty_tape_and_empty_arrays():
    assert wp.Tape().visualize().startswith("digraph tape {")
    x, y = wp.zeros(0, requires_grad=True), wp.zeros(0, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(double, 0, [x], [y])
    assert ("x", "double") in edges(tape.visualize())


def test_a_long_irregular_tape_stays_readable():
    rng = np.random.default_rng(0)
    arrays = [array(8) for _ in range(40)]
    with wp.Tape() as tape:
        for _ in range(10_000):
            i, j, k = rng.integers(40, size=3)
            wp.launch(plus, int(rng.integers(1, 9)), [arrays[i], arrays[j]], [arrays[k]])
    text = tape.visualize()
    assert "operations not drawn" in text
    assert len(boxes(text)) < 100


def test_visualizing_changes_nothing():
    x, y = source(), array()
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y])
        wp.launch(double, 3, [y], [y])
    before = tape.memory
    tape.visualize()
    assert tape.memory == before
    tape.backward(grads={y: np.ones(3, np.float32)})
    assert x.grad.list() == [4, 4, 4]

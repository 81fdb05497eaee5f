"""Native functions: what checks say of them, what snippets do to arrays, mistakes."""

import warnings

import pytest

import engine as wp
from engine.autograd import check_tape, jvp
from engine.frontend.lowering.snippet_access import access
from tests.corpus.taped import floats, gradients, recorded, verdicts

# ---- what checks say


def spoiled(factor):
    @wp.func_native(
        "float s = sinf(x); return expf(s * x);",
        f"float s = sinf(x); adj_x += {factor:f}f * expf(s * x) * (s + x * cosf(x)) * adj_ret;",
    )
    def curve(x: float) -> float: ...

    @wp.kernel
    def curves(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = curve(x[i]) * 2.0

    return curves


@pytest.mark.parametrize("factor", [1.0, 1.01, 0.99, -1.0, 0.0, 2.0])
def test_wrong_adjoints_are_caught_in_float32(factor) -> None:
    x, y = floats([0.3, 0.9, -1.2, 1.6]), floats([0.0] * 4)
    tape = recorded(spoiled(factor), 4, [x], [y])
    result = check_tape(tape)
    assert verdicts(tape) == {("x", "y"): "pass" if factor == 1.0 else "fail"}
    (launch,) = result.launches
    assert [(name, s.file) for name, s in launch.culprits] == [("curve", __file__)]
    assert result.passed == (factor == 1.0)


@wp.func_native("return (x + 1.0e6f) - 1.0e6f;", "adj_x += adj_ret;")
def noisy(x: float) -> float: ...


@wp.kernel
def noise(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = noisy(x[i])


def test_noise_above_the_tolerance_is_inconclusive() -> None:
    x, y = floats([0.3, 0.9, -1.2]), floats([0.0] * 3)
    assert verdicts(recorded(noise, 3, [x], [y])) == {("x", "y"): "inconclusive"}


@wp.func_native("return a[int(10.0f * x)];", "(void)adj_ret;")
def picked(x: float, a: wp.array(dtype=float)) -> float: ...


@wp.kernel
def pick(x: wp.array(dtype=float), a: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = picked(x[i], a) + x[i]


def test_displaced_indices_stay_inside() -> None:
    x, a, y = floats([0.05, 0.29]), floats([1.0, 2.0, 3.0], False), floats([0.0, 0.0])
    assert verdicts(recorded(pick, 2, [x, a], [y]))["x", "y"] in ("pass", "inconclusive")


@wp.func_native("return 2.0f * x;")
def dead_end(x: float) -> float: ...


@wp.func_native("return i + 1;")
def counted_up(i: int) -> int: ...


@wp.kernel
def ends(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = dead_end(x[i]) + x[counted_up(i) - 1]


@wp.kernel
def indexes(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[counted_up(i) - 1] = 3.0 * x[i]


def test_a_function_without_adjoint_says_that_gradients_end() -> None:
    x, y = floats([0.5, 1.5]), floats([0.0, 0.0])
    tape = recorded(ends, 2, [x], [y])
    with pytest.warns(UserWarning, match="native function 'dead_end'.*no adj_snippet"):
        tape.backward(grads={y: wp.ones_like(y)})
    assert x.grad.numpy().tolist() == [1.0, 1.0]
    (launch,) = check_tape(tape).launches
    assert [p.verdict for p in launch.pairs] == ["fail"]
    assert [name for name, _ in launch.stops] == ["dead_end"]
    with pytest.raises(wp.KernelError, match=r"E110.*no derivative in forward mode"):
        jvp(tape, tangents={x: wp.ones_like(x)})


def test_integers_need_no_adjoint() -> None:
    x, y = floats([0.5, 1.5]), floats([0.0, 0.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tape = gradients(indexes, 2, [x], [y])
    assert x.grad.numpy().tolist() == [3.0, 3.0]
    assert verdicts(tape) == {("x", "y"): "pass"}  # in float64: nothing native is float


# ---- what a snippet does to its arrays


@pytest.mark.parametrize(
    ("text", "reads", "writes", "updates"),
    [
        ("out[i] = a * x[i] + y[i];", "xy", "o", ""),
        ("out[i] += x[idx[i]]; // y[i] = 1", "xk", "", "o"),
        ("out[i] = out[i - 1];", "o", "o", ""),
        ("float& r = x[i]; r = 2.0f;", "x", "x", ""),
        ("float* p = &x[i]; *p = 2.0f;", "x", "x", ""),
        ("wp::atomic_add(out, i, x[i]); y[i].c[0] = 2;", "x", "y", "o"),
        ("auto f = [&](float& v) { v = 1; }; f(x[i]);", "x", "x", ""),
        ("if (x[i] == y[i]) out[i]++;", "oxy", "o", ""),
        ('const char* s = "x[i] = 1"; int n = y.shape[0];', "", "", ""),
        ("other.x = 3; out[i][j] = 1.0f; out(i, j) -= x(i, j);", "x", "o", "o"),
        ("swap(x, y);", "xy", "xy", ""),
    ],
)
def test_accesses(text, reads, writes, updates) -> None:
    names = {"x": "x", "y": "y", "o": "out", "k": "idx"}
    found = access(text, names.values())
    assert found.reads == {names[c] for c in reads}
    assert found.writes == {names[c] for c in writes}
    assert found.updates == {names[c] for c in updates}


# ---- mistakes


def call(native, *args):
    if len(args) == 1:

        @wp.kernel
        def k(x: wp.array(dtype=float)):
            x[0] = native(x[0])
    else:

        @wp.kernel
        def k(x: wp.array(dtype=float)):
            native(x[0])

    wp.launch(k, 1, [wp.zeros(1)])


def test_errors_in_a_snippet_are_told_at_its_decorator() -> None:
    @wp.func_native(
        """
        float a = x * 2.0f;
        return b + a;
        """
    )
    def wrong(x: float) -> float: ...

    with pytest.raises(wp.CompilerError) as e:
        call(wrong, 1)
    (d,) = e.value.diagnostics
    assert d.code == "E304" and d.span.file == __file__
    assert d.span.line == wrong.func.__code__.co_firstlineno
    assert "wrong" in d.message and "b" in d.message
    assert "`return b + a;`" in d.help and d.help.startswith("correct line 2")
    assert any(".log" in note for note in d.notes)


def test_errors_in_an_adjoint_come_with_the_backward_pass() -> None:
    @wp.func_native("return 2.0f * x;", "adj_x += 2.0f * adj_y;")
    def twice(x: float) -> float: ...

    @wp.kernel
    def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        y[0] = twice(x[0])

    x, y = floats([1.0]), floats([0.0])
    tape = recorded(k, 1, [x], [y])
    with pytest.raises(wp.CompilerError, match=r"E304.*adj_twice.*adj_y"):
        tape.backward(grads={y: wp.ones_like(y)})


@wp.func_native("return x;")
def with_a_body(x: float) -> float:
    return x + 1.0


@wp.func_native("x;")
def returns_nothing(x: float) -> float: ...


@wp.func_native("return x;")
def two_results(x: float) -> tuple[float, float]: ...


@wp.func_native("return new_;")
def keyword(new: float) -> float: ...


@wp.func_native("return x;")
def documented(x: float) -> float:
    """Text, and a `return`, are no body."""
    return


@pytest.mark.parametrize(
    ("native", "code"),
    [(with_a_body, "E106"), (returns_nothing, "E109"), (two_results, "E103"), (keyword, "E103")],
)
def test_refusals(native, code) -> None:
    with pytest.raises(wp.KernelError) as e:
        call(native, 1)
    assert e.value.diagnostics[0].code == code and e.value.diagnostics[0].help
    assert e.value.diagnostics[0].span.file == __file__


@wp.func_native("return 0.0f;")
def of_a_pair(p: tuple[float, float]) -> float: ...


@wp.func_native("return row[0];")
def of_a_row(row: wp.array(dtype=float)) -> float: ...


@wp.kernel
def passes_a_pair(x: wp.array2d(dtype=float)):
    x[0, 0] = of_a_pair((x[0, 0], x[0, 1]))


@wp.kernel
def passes_a_row(x: wp.array2d(dtype=float)):
    x[0, 0] = of_a_row(x[1])


@pytest.mark.parametrize(("kernel", "what"), [(passes_a_pair, "tuple"), (passes_a_row, "part")])
def test_tuples_and_views_are_no_arguments(kernel, what) -> None:
    with pytest.raises(wp.KernelError) as e:
        wp.launch(kernel, 1, [wp.zeros((2, 2), dtype=float)])
    (d,) = e.value.diagnostics
    assert d.code == "E104" and f"cannot take a {what}" in d.message and d.help


def test_stubs_and_calls() -> None:
    assert "no body" in documented.__doc__
    call(documented, 1)
    with pytest.raises(wp.EngineError, match="E106"):
        documented(1.0)
    with pytest.raises(wp.KernelError, match="E103"):
        wp.func_native(3)
    with pytest.raises(wp.KernelError, match="E103"):
        wp.func_native("return x;")(3)

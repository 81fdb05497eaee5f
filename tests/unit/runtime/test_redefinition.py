"""Functions that are redefined, or given a gradient, after a kernel that calls them ran."""

from types import SimpleNamespace

import pytest

import engine as wp
from engine import KernelError
from engine.ir.nodes import callees
from engine.runtime.plan import Plan


def run(kernel, value=3.0):
    """y = kernel(x), and a tape to differentiate it with."""
    x = wp.array([value], dtype=float, requires_grad=True)
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=1, inputs=[x], outputs=[y])

    def gradient():
        tape.backward(grads={y: wp.ones_like(y)})
        return float(x.grad.numpy()[0])

    return float(y.numpy()[0]), gradient


@pytest.fixture
def plans(monkeypatch):
    """Kernels in the order in which they were lowered."""
    made = []
    init = Plan.__init__

    def counted(self, kernel, variants, backend):
        made.append(kernel)
        init(self, kernel, variants, backend)

    monkeypatch.setattr(Plan, "__init__", counted)
    return made


def test_a_gradient_after_the_first_launch_counts_from_the_next_one():
    @wp.func
    def f(a: float):
        return a * a

    @wp.kernel
    def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        y[0] = f(x[0])

    _, before = run(k)

    @wp.func_grad(f)
    def adj_f(a: float, g: float):
        wp.adjoint[a] += 100.0 * g

    _, after = run(k)
    assert before() == 6.0  # the tape keeps what it recorded
    assert after() == 100.0

    @wp.func_grad(f)
    def adj_f2(a: float, g: float):
        wp.adjoint[a] += 200.0 * g

    assert run(k)[1]() == 200.0


def test_a_replay_after_the_first_launch():
    @wp.func
    def f(a: float):
        return a * a

    @wp.func
    def g(a: float):
        return f(a) * a

    @wp.kernel
    def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        y[0] = g(x[0])

    assert run(k)[1]() == 27.0

    @wp.func_replay(f)
    def replay(a: float):
        return 0.0

    assert run(k)[0] == 27.0
    (inner,) = [f for f in callees(k.ir) if f.name == "f"]
    assert inner.replay is not None
    assert inner.replay.name == "replay"


def test_a_function_defined_again_under_its_name():
    @wp.func
    def f(a: float):
        return 2.0 * a

    @wp.func
    def outer(a: float):
        return f(a) + 1.0

    @wp.kernel
    def direct(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        y[0] = f(x[0])

    @wp.kernel
    def indirect(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        y[0] = outer(x[0])

    @wp.kernel
    def fresh(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        y[0] = outer(x[0]) + 1.0

    first, gradient = run(direct)
    assert (first, run(indirect)[0]) == (6.0, 7.0)

    @wp.func
    def f(a: float):  # noqa: F811
        return 5.0 * a

    assert (run(direct)[0], run(indirect)[0], run(fresh)[0]) == (15.0, 16.0, 17.0)
    assert gradient() == 2.0


def test_globals_in_a_notebook(tmp_path):
    """Cells run in one namespace, each from source of its own."""
    names = {"wp": wp, "__name__": "notebook"}

    def cell(number, text):
        path = tmp_path / f"cell{number}.py"
        path.write_text(text)
        exec(compile(text, str(path), "exec"), names)

    cell(1, "@wp.func\ndef f(a: float):\n    return a + 1.0\n")
    cell(2, "@wp.kernel\ndef k(x: wp.array(dtype=float), y: wp.array(dtype=float)):\n"
            "    y[0] = f(x[0])\n")  # fmt: skip
    assert run(names["k"])[0] == 4.0
    cell(3, "@wp.func\ndef f(a: float):\n    return a + 2.0\n")
    assert run(names["k"])[0] == 5.0


def test_a_function_in_a_namespace():
    @wp.func
    def f(a: float):
        return a + 1.0

    space = SimpleNamespace(f=f)
    holder = type("holder", (), {"f": f})

    @wp.kernel
    def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        y[0] = holder.f(x[0])

    assert run(k)[0] == 4.0

    @wp.func
    def g(a: float):
        return a + 2.0

    holder.f = space.f = g
    assert run(k)[0] == 5.0


def test_a_mistake_can_be_corrected_after_it_was_reported():
    @wp.func
    def f(a: float):
        return a + undefined_name  # noqa: F821

    @wp.func
    def outer(a: float):
        return f(a)

    @wp.kernel
    def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        y[0] = outer(x[0])

    with pytest.raises(KernelError):
        run(k)

    @wp.func
    def f(a: float):  # noqa: F811
        return a + 1.0

    assert run(k)[0] == 4.0


def test_functions_that_a_kernel_does_not_call_leave_it_alone(plans):
    def make(factor):
        @wp.func
        def f(a: float):
            return factor * a

        @wp.kernel(module="unique")
        def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
            y[0] = f(x[0])

        return k

    kernels = []
    for i in range(4):
        kernels.append(make(float(i)))
        assert [run(k)[0] for k in kernels] == [3.0 * j for j in range(i + 1)]
    assert plans == kernels
    assert all(k._plan is k.plan for k in kernels)


def test_a_gradient_with_too_few_parameters():
    @wp.func
    def f(a: float):
        return a

    @wp.kernel
    def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        y[0] = f(x[0])

    run(k)

    @wp.func_grad(f)
    def adj_f(a: float):
        wp.adjoint[a] += 1.0

    with pytest.raises(KernelError) as error:
        run(k)
    (found,) = error.value.diagnostics
    assert found.code == "E109"
    assert "takes 2 parameters, but `adj_f` has 1" in found.message
    assert found.span.line == adj_f.func.__code__.co_firstlineno + 1  # the `def`

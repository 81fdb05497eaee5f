"""Modules of kernels: made by hand, loaded, changed; and what programs ask of them."""

import inspect
import warnings

import numpy as np
import pytest

import engine as wp
from engine import KernelError, LaunchError

FACTOR = 2.0


def times(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * FACTOR


@wp.func
def half(x: float):
    return 0.5 * x


@wp.struct
class Pair:
    a: float
    b: float


def run(kernel):
    x = wp.array([1.0, 3.0], dtype=float, requires_grad=True)
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(kernel, 2, [x], [y])
    tape.backward(grads={y: wp.ones_like(y)})
    return y.numpy(), x.grad.numpy()


def test_kernels_by_hand(monkeypatch):
    module = wp.Module("tests.by_hand")
    kernel = wp.Kernel(times, key="twice", module=module)
    assert kernel.key == "twice"
    assert kernel.module is module
    assert kernel.options == {}
    assert dict(module.kernels) == {"twice": kernel}
    module.load("cpu")
    values, gradient = run(kernel)
    np.testing.assert_array_equal(values, [2, 6])
    np.testing.assert_array_equal(gradient, [2, 2])
    before = module.get_module_hash()
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    np.testing.assert_array_equal(run(kernel)[0], [2, 6])  # it is what it was at its first launch
    assert module.get_module_hash() != before
    module.mark_modified()
    values, gradient = run(kernel)
    np.testing.assert_array_equal(values, [5, 15])
    np.testing.assert_array_equal(gradient, [5, 5])


def test_kernels_without_a_backward_pass():
    kernel = wp.Kernel(times, key="forward", options={"enable_backward": False})
    assert kernel.module is wp.get_module(__name__)
    assert not kernel.enable_backward
    with pytest.warns(UserWarning, match="no gradient flows through kernel 'forward'"):
        np.testing.assert_array_equal(run(kernel)[1], [0, 0])
    kernel.options["enable_backward"] = True
    np.testing.assert_array_equal(run(kernel)[1], [2, 2])


def test_names_of_a_module():
    module = wp.get_module(__name__)
    assert module.functions["half"] is half
    assert module.structs["Pair"] is Pair
    assert module.options["max_unroll"] == 16


def test_loading_tells_of_all_kernels_that_cannot_be():
    module = wp.get_module("tests.broken")

    def first(x: wp.array(dtype=float)):
        x[0] = unknown_name  # noqa: F821

    def second(x: wp.array(dtype=float)):
        x[0] = "text"

    kept = [wp.Kernel(f, module=module) for f in (first, second)]
    with pytest.raises(KernelError) as caught:
        wp.load_module("tests.broken")
    assert len(caught.value.diagnostics) == len(kept)
    with pytest.raises(RuntimeError):  # as programs written for Warp catch it
        module.load()
    with pytest.raises(wp.WarpCodegenError):
        wp.force_load(["cpu"], [module])


def test_loading_leaves_what_is_missing_to_launches():
    module = wp.get_module("tests.missing")

    def needs_more(x: wp.array(dtype=float)):
        part = wp.array(ptr=x.ptr, shape=(2,), dtype=float)
        x[0] = part[1]

    def simple(x: wp.array(dtype=float)):
        x[0] = 3.0

    first, second = (wp.Kernel(f, module=module) for f in (needs_more, simple))
    wp.load_module("tests.missing")
    x = wp.zeros(2, dtype=float)
    wp.launch(second, dim=1, inputs=[x])
    assert x.numpy()[0] == 3.0
    with pytest.raises(KernelError, match=r"E112.*addresses are not supported"):
        wp.launch(first, dim=1, inputs=[x])


def test_modules_that_are_not_there():
    with pytest.raises(LaunchError, match=r"E202.*'tests.nowhere' has no kernels"):
        wp.load_module("tests.nowhere")
    with pytest.raises(LaunchError, match=r"E202.*takes a module or its name"):
        wp.load_module(3)
    with pytest.raises(LaunchError, match=r"E208"):
        wp.load_module(__name__, device="cuda:3")
    wp.load_module(device="cpu")  # this one


def test_a_group_of_its_own():
    made = []
    for factor in (1.0, 2.0):

        @wp.kernel(module="unique", module_options={"fast_math": True})
        def scaled(x: wp.array(dtype=float)):
            x[0] = x[0] * factor

        made.append(scaled)
    assert made[0].module.name != made[1].module.name
    assert made[0].module.name.startswith("test_a_group_of_its_own__locals__scaled_")
    assert wp.get_module(made[0].module.name) is made[0].module
    assert made[0].module.options["fast_math"]
    plain = wp.kernel(module="unique")(times)
    fast = wp.kernel(module="unique", module_options={"fast_math": True})(times)
    assert plain.module.name != fast.module.name
    with pytest.raises(LaunchError, match=r"E202.*no module option 'fast'"):
        wp.kernel(module="unique", module_options={"fast": True})(times)
    wrong = [
        ({"fast_math": True}, None, "apply to other kernels"),
        ({}, "some_group", "apply to other kernels"),
        ("fast_math", "unique", "must be a dictionary, got 'fast_math' of type str"),
        *(({"deterministic_max_records": n}, "unique", "not negative") for n in (True, 1.5, -1)),
    ]  # fmt: skip
    for options, module, message in wrong:
        with pytest.raises(LaunchError, match=rf"E202.*{message}"):
            wp.kernel(module=module, module_options=options)(times)
    with pytest.raises(LaunchError, match=r"E202.*no option 'fast'"):
        wp.kernel(fast=True)
    assert wp.kernel(launch_bounds=64)(times).options == {"launch_bounds": 64}


@wp.kernel
def inverse(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 1.0 / x[i]


def test_floats_are_looked_at(monkeypatch, capsys):
    monkeypatch.setattr(wp.config, "verify_fp", True)
    x = wp.array([1.0, 0.0, 2.0, 0.0], dtype=float, requires_grad=True)
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(inverse, 4, [x], [y])
    said = capsys.readouterr().out
    assert said == "kernel 'inverse' wrote inf to y[1]: 2 of 4 values are not finite\n"
    tape.backward(grads={y: wp.ones_like(y)})
    said = capsys.readouterr().out
    assert said.startswith("the adjoint of kernel 'inverse' wrote -inf to x[1]: 2 of 4")


def test_launches_are_logged(monkeypatch):
    class Listener:
        def __init__(self):
            self.said = []

        def info(self, message):
            self.said.append(message)

        debug = warning = error = info

    monkeypatch.setattr(wp.config, "print_launches", True)
    x, y = wp.ones(2), wp.zeros(2)
    listener = Listener()
    with wp.ScopedLogger(listener):
        wp.launch(inverse, 2, [x], [y])
        with wp.ScopedLogLevel(wp.LOG_WARNING):
            wp.launch(inverse, 2, [x], [y])
    wp.config.print_launches = False
    assert len(listener.said) == 1
    assert listener.said[0].startswith("kernel: inverse dim: (2,) arguments: [array(shape=(2,)")
    with pytest.raises(TypeError, match="a logger has the methods"):
        wp.set_logger(3)


def test_warnings_have_a_level_and_another_logger_gets_them():
    class Listener:
        def __init__(self):
            self.said = []

        def warning(self, message, category=None, stacklevel=1):
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                warnings.warn(message, category, stacklevel=stacklevel)
            self.said.append((str(seen[0].message), category, seen[0].filename, seen[0].lineno))

        def info(self, message):
            raise AssertionError(message)

        debug = error = info

    def here():
        return inspect.currentframe().f_back.f_lineno

    listener = Listener()
    means_nothing = {"dtype": int, "requires_grad": True}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with wp.ScopedLogger(listener):
            _, line = wp.zeros(2, **means_nothing), here()
        with wp.ScopedLogLevel(wp.LOG_ERROR):
            wp.zeros(2, **means_nothing)
        with wp.ScopedLogLevel(wp.LOG_ERROR), wp.ScopedLogger(listener):
            wp.zeros(2, **means_nothing)
    ((message, category, file, at),) = listener.said
    assert message.startswith("requires_grad has no effect here")
    assert (category, file, at) == (UserWarning, __file__, line)
    with pytest.warns(UserWarning, match="requires_grad has no effect here") as told:
        _, line = wp.zeros(2, **means_nothing), here()
    assert (told[0].filename, told[0].lineno) == (__file__, line)


def test_the_cache_can_be_cleared(monkeypatch, tmp_path):
    monkeypatch.delenv("ENGINE_CACHE_DIR", raising=False)
    monkeypatch.setattr(wp.config, "cache_dir", None)
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path / "kernels"))

    @wp.kernel
    def fresh(x: wp.array(dtype=float)):
        x[0] = 17.0

    x = wp.zeros(1)
    wp.launch(fresh, 1, [x])
    assert list((tmp_path / "kernels" / "objects").iterdir())
    wp.clear_kernel_cache()
    assert not list((tmp_path / "kernels" / "objects").iterdir())
    wp.launch(fresh, 1, [x])
    fresh.module.unload()
    wp.launch(fresh, 1, [x])
    assert x[0] == 17

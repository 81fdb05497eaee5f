"""Kernels: keys, modules, captured values, options."""

import copy

import pytest

import engine as wp
from engine import KernelError


@wp.kernel
def scale(x: wp.array(dtype=float), s: float, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * s


def test_keys_and_modules():
    @wp.kernel
    def inner(x: wp.array(dtype=float)):
        x[0] = 1.0

    @wp.kernel(name="other", enable_backward=False, module="elsewhere")
    def named(x: wp.array(dtype=float)):
        x[0] = 2.0

    assert scale.key == "scale"
    assert inner.key == "test_keys_and_modules__locals__inner"
    assert named.key == "other"
    assert named.module.name == "elsewhere"
    assert scale.module is wp.get_module(__name__)
    assert not named.enable_backward
    x = wp.zeros(1)
    wp.launch(inner, 1, [x])
    wp.launch(named, 1, [x])
    assert x[0] == 2
    assert repr(scale) == "<kernel scale>"
    assert scale.__doc__ is None
    assert copy.copy(scale).key == "scale"


def test_values_captured_at_first_launch():
    made = []
    for factor in (2.0, 3.0):

        @wp.kernel(module="unique")
        def times(x: wp.array(dtype=float)):
            x[0] = x[0] * factor

        made.append(times)
    x = wp.ones(1)
    wp.launch(made[0], 1, [x])  # lowered now, when factor is 3
    assert x[0] == 3


def test_a_kernel_sees_its_globals_at_its_own_first_launch():
    scope = {"wp": wp}
    source = (
        "N = 1.0\n"
        "@wp.func\ndef n():\n    return N\n"
        "@wp.kernel\ndef first(x: wp.array(dtype=float)):\n    x[0] = N\n"
        "@wp.kernel\ndef second(x: wp.array(dtype=float)):\n    x[0] = N + n()\n"
    )
    import linecache

    linecache.cache["<globals>"] = (len(source), None, source.splitlines(True), "<globals>")
    scope["__name__"] = "globals_test"
    exec(compile(source, "<globals>", "exec"), scope)
    x = wp.zeros(1)
    wp.launch(scope["first"], 1, [x])
    assert x[0] == 1
    scope["N"] = 5.0
    wp.launch(scope["second"], 1, [x])
    assert x[0] == 10


@pytest.mark.parametrize("decorator", [wp.kernel, wp.func])
def test_decorators_take_functions(decorator):
    with pytest.raises(KernelError):
        decorator(3)
    with pytest.raises(KernelError):
        wp.func_grad(lambda x: x)


def test_options():
    wp.set_module_options({"enable_backward": True, "max_unroll": 4})
    assert wp.get_module_options()["max_unroll"] == 4
    assert wp.get_module_options() is scale.module.options


def test_scoped_timer(capsys):
    times = {}
    with wp.ScopedTimer("work", dict=times):
        pass
    assert "work took" in capsys.readouterr().out
    assert len(times["work"]) == 1
    with wp.ScopedTimer("quiet", active=False) as t:
        assert t.elapsed == 0
    assert capsys.readouterr().out == ""

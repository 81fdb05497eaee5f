"""Each place where a framework is watched is tested: spoilt ones are told, right ones are not."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from engine.foreign import FRAMEWORKS, examined, watching
from engine.foreign.seams import SEAMS

MODULES = {told: module for module, _, told in FRAMEWORKS}


def framework(told: str) -> ModuleType:
    """An imported framework; skips the test where there is none."""
    module = pytest.importorskip(MODULES[told], reason=f"{MODULES[told]} is not installed")
    if told == "Warp" and "__is_engine__" in vars(module):
        pytest.skip("what is called warp is the engine")
    return module


@pytest.mark.parametrize("told", MODULES)
def test_the_installed_version_can_be_watched(told: str) -> None:
    module = framework(told)
    with watching() as watched:
        assert watched.unwatched == []
        found = watched.installations.values()
        keys = {key for x in found if x.framework == told for key in x.parts}
        assert keys == {s.key for s in SEAMS if s.framework == told}
    assert watched.unwatched == [] and not watched.found
    assert examined(told, module) == []


# ---- ways to spoil a seam: it is not there, or it is, and nothing goes by it


Spoil = Callable[[pytest.MonkeyPatch], None]


def _no_function(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(framework("PyTorch").autograd, "Function", type("Function", (), {}))


def _function_gone(patch: pytest.MonkeyPatch) -> None:
    patch.delattr(framework("PyTorch").autograd, "Function")


def _apply_of_each_class(patch: pytest.MonkeyPatch) -> None:
    """Classes have an `apply` of their own."""
    function = framework("PyTorch").autograd.Function
    original = inspect.getattr_static(function, "apply")

    def __init_subclass__(cls: Any) -> None:
        cls.apply = original.__get__(None, cls)

    patch.setattr(function, "__init_subclass__", classmethod(__init_subclass__), raising=False)


def _no_nodes(patch: pytest.MonkeyPatch) -> None:
    function = framework("PyTorch").autograd.Function
    patch.delattr(sys.modules[function.__module__], "BackwardCFunction")


def _operators_elsewhere(patch: pytest.MonkeyPatch) -> None:
    """Operators with functions of which the names of captured variables are others."""
    framework("PyTorch")
    from engine.foreign import torch_library

    patch.setattr(torch_library, "_cells", lambda function: {})


def _no_operators(patch: pytest.MonkeyPatch) -> None:
    patch.delattr(framework("PyTorch").library, "register_autograd")


def _no_hooks(patch: pytest.MonkeyPatch) -> None:
    torch = framework("PyTorch")
    real = torch.Tensor.grad_fn

    class Node:
        def __init__(self, node: Any) -> None:
            self.node = node

    patch.setattr(torch.Tensor, "grad_fn", property(lambda t: Node(real.__get__(t))))


def _no_step_hooks(patch: pytest.MonkeyPatch) -> None:
    module = sys.modules[framework("PyTorch").optim.Optimizer.__module__]
    patch.delattr(module, "register_optimizer_step_post_hook")


def _steps_without_hooks(patch: pytest.MonkeyPatch) -> None:
    """Optimizers do not look for hooks."""
    patch.setattr(framework("PyTorch").optim.Optimizer, "profile_hook_step", staticmethod(_same))


def _same(step: Any) -> Any:
    return step


def _jax(name: str) -> Any:
    framework("JAX")
    return __import__(f"jax._src.{name}", fromlist=["_"])


def _without(module: str, name: str) -> Spoil:
    return lambda patch: patch.delattr(_jax(module), name)


def _past(cls: str) -> Spoil:
    """A call of a rule goes past the `__call__` that is replaced, as one in C would."""

    def spoil(patch: pytest.MonkeyPatch) -> None:
        jax = framework("JAX")
        real = getattr(jax, cls)

        class Other(real):  # type: ignore[misc, valid-type]
            __call__ = real.__call__

        class Rules:
            __call__ = real.__call__

            def __new__(self, function: Any) -> Any:
                return Other(function)

        patch.setattr(jax, cls, Rules)

    return spoil


def _unused(module: str, name: str) -> Spoil:
    """What is replaced is there, and nothing looks it up any more."""

    def spoil(patch: pytest.MonkeyPatch) -> None:
        found = _jax(module)
        for f in list(vars(found).values()):
            if inspect.isfunction(f) and f.__module__ == found.__name__:
                patch.setattr(f, "__code__", _renamed(f.__code__, name))

    return spoil


def _renamed(code: Any, name: str) -> Any:
    inner = (_renamed(c, name) if inspect.iscode(c) else c for c in code.co_consts)
    names = (f"_other{n}" if n == name else n for n in code.co_names)
    return code.replace(co_consts=tuple(inner), co_names=tuple(names))


def _bound_in_c(patch: pytest.MonkeyPatch) -> None:
    """`bind` of a primitive cannot be replaced."""
    loops = _jax("lax.control_flow.loops")

    class Fixed(type(loops.scan_p)):  # type: ignore[misc]
        __slots__ = ()

        def __setattr__(self, name: str, value: Any) -> None:
            if name == "bind":
                raise AttributeError("'Primitive' object attribute 'bind' is read-only")
            super().__setattr__(name, value)

    patch.setattr(loops.scan_p, "__class__", Fixed)


def _no_tape(patch: pytest.MonkeyPatch) -> None:
    patch.delattr(framework("Warp").Tape, "record_func")


def _no_launch(patch: pytest.MonkeyPatch) -> None:
    patch.delattr(framework("Warp"), "launch")


def _launch_in_c(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(framework("Warp"), "launch", ModuleType)


def _no_fill(patch: pytest.MonkeyPatch) -> None:
    patch.delattr(framework("Warp").array, "fill_")


SPOILT = {
    ("PyTorch", "functions", _no_function): "apply",
    ("PyTorch", "functions", _function_gone): "no attribute 'Function'",
    ("PyTorch", "functions", _apply_of_each_class): "not noticed",
    ("PyTorch", "functions", _no_nodes): "BackwardCFunction",
    ("PyTorch", "operators", _operators_elsewhere): "not noticed",
    ("PyTorch", "operators", _no_operators): "register_autograd",
    ("PyTorch", "passes", _no_hooks): "register_prehook",
    ("PyTorch", "steps", _no_step_hooks): "register_optimizer_step_post_hook",
    ("JAX", "vjp", _past("custom_vjp")): "not noticed",
    ("JAX", "jvp", _past("custom_jvp")): "not noticed",
    ("JAX", "runs", _without("pjit", "_pjit_call_impl_python")): "_pjit_call_impl_python",
    ("JAX", "runs", _unused("pjit", "_get_fastpath_data")): "not noticed",
    ("JAX", "programs", _without("pjit", "jit_p")): "jit_p",
    ("JAX", "programs", _bound_in_c): "read-only",
    ("JAX", "derivatives", _without("custom_derivatives", "custom_jvp_call_p")): "jvp_call_p",
    ("Warp", "tapes", _no_tape): "record_func",
    ("Warp", "launches", _no_launch): "launch",
    ("Warp", "launches", _launch_in_c): "not noticed",
    ("Warp", "writes", _no_fill): "fill_",
}  # fmt: skip


@pytest.mark.parametrize(
    ("told", "key", "spoil", "why"), [(*k, why) for k, why in SPOILT.items()],
    ids=[f"{t}-{k}-{n}" for n, (t, k, _) in enumerate(SPOILT)],
)  # fmt: skip
def test_a_spoilt_seam_is_told(told: str, key: str, spoil: Spoil, why: str) -> None:
    module = framework(told)
    (name,) = (s.name for s in SEAMS if (s.framework, s.key) == (told, key))
    with _spoilt(spoil), watching() as watched:
        found = {u.seam: u for u in watched.unwatched if u.framework == told}
    assert found[name].version == module.__version__
    assert why in found[name].why
    with watching() as watched:  # nothing is left of it
        assert watched.unwatched == []


@contextlib.contextmanager
def _spoilt(spoil: Spoil) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        spoil(patch)
        yield


def test_every_seam_is_spoilt_by_something() -> None:
    assert {(t, k) for t, k, _ in SPOILT} == {(s.framework, s.key) for s in SEAMS}


def test_steps_that_are_not_noticed_are_told_where_everything_is_tested() -> None:
    torch = framework("PyTorch")

    class Fresh(torch.optim.SGD):  # classes that have made an optimizer have what they look up
        pass

    with _spoilt(_steps_without_hooks), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Fresh, "step", lambda self: None)
        patch.setattr(torch.optim, "SGD", Fresh)
        found = examined("PyTorch", torch)
    assert [(u.seam, u.why) for u in found] == [
        (next(s.name for s in SEAMS if s.key == "steps"), "what happens there is not noticed")
    ]


# ---- forms of `apply` that PyTorch had, has, or may have


def test_an_apply_in_c_and_one_in_python_are_seen() -> None:
    torch = framework("PyTorch")
    from tests.foreign.torch_right import Cube
    from tests.foreign.torch_watched import passed, verdicts

    base = vars(torch._C._FunctionBase)["apply"]

    def apply(cls: Any, *args: Any) -> Any:
        return base.__get__(None, cls)(*args)

    for form in (base, classmethod(apply)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch.autograd.Function, "apply", form)
            run = lambda: passed(Cube.apply(torch.randn(3, requires_grad=True)))  # noqa: E731
            assert set(verdicts(run).values()) == {"pass"}


def test_a_run_that_is_not_noticed_is_told_when_the_program_has_ended() -> None:
    jax = framework("JAX")

    def rule(x: Any) -> Any:
        return x * 2.0

    f = jax.custom_vjp(rule)
    f.defvjp(lambda x: (x * 2.0, None), lambda _, g: (g * 2.0,))
    pjit = _jax("pjit")
    real = pjit._pjit_call_impl_python
    with watching() as watched:
        pjit._pjit_call_impl_python = real  # as if JAX went past the replacement
        jax.jit(f)(3.0)
        assert watched.unwatched == []
    assert [(u.seam, u.why) for u in watched.unwatched] == [
        (next(s.name for s in SEAMS if s.key == "runs"), "what happens there is not noticed")
    ]
    assert pjit._pjit_call_impl_python is real

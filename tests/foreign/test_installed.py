"""Functions of installed packages are left alone, of PyTorch and of JAX, unless they are named."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from engine.foreign import Watched, watching

TORCH = """
import torch

class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return -grad
"""
JAX = """
import jax

@jax.custom_vjp
def reverse(x):
    return x * 1.0

reverse.defvjp(lambda x: (x * 1.0, None), lambda kept, g: (-g,))
"""

Install = Callable[[str, str], ModuleType]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a package of that name and text, and imports it."""
    folder = tmp_path / "lib" / "site-packages"
    names = []

    def done(name: str, text: str) -> ModuleType:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(text)
        monkeypatch.syspath_prepend(str(folder))
        names.append(name)
        return importlib.import_module(name)

    yield done
    for name in names:
        sys.modules.pop(name, None)


def seen(run: Callable[[], Any], **options: Any) -> tuple[Watched, list[str]]:
    """What was seen, and the verdicts."""
    with watching(**options) as watched:
        run()
    results = list(watched.results())
    return watched, [p.verdict for t in results for x in t.launches for p in x.pairs]


def test_torch(install: Install) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    gradlib = install("gradlib", TORCH)

    def run() -> None:
        gradlib.Reverse.apply(torch.ones(2, requires_grad=True)).sum().backward()

    watched, verdicts = seen(run)
    assert verdicts == [] and watched.left_alone == ("`Reverse` of gradlib",)
    watched, verdicts = seen(run, chosen=lambda name: name == "Reverse")
    assert verdicts == ["fail"] and watched.left_alone == ()


def test_jax(install: Install) -> None:
    jax = pytest.importorskip("jax", reason="jax is not installed")
    rulelib = install("rulelib", JAX)

    def run() -> None:
        jax.grad(lambda x: rulelib.reverse(x).sum())(jax.numpy.ones(2))

    watched, verdicts = seen(run)
    assert verdicts == [] and watched.left_alone == ("`reverse` of rulelib",)
    watched, verdicts = seen(run, chosen=lambda name: name == "reverse")
    assert verdicts == ["fail"] and watched.left_alone == ()


def test_rules_of_the_framework_itself_are_not_told_of() -> None:
    jax = pytest.importorskip("jax", reason="jax is not installed")
    watched, verdicts = seen(lambda: jax.grad(jax.nn.relu)(1.5))
    assert verdicts == [] and watched.left_alone == ()


def test_a_class_of_the_users_own_that_derives_from_one(install: Install) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    gradlib = install("gradlib", TORCH)

    class Mine(gradlib.Reverse):  # type: ignore[name-defined, misc]
        pass

    class Right(gradlib.Reverse):  # type: ignore[name-defined, misc]
        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad

    for cls, verdict in ((Mine, "fail"), (Right, "pass")):
        _, verdicts = seen(lambda cls=cls: cls.apply(torch.ones(2, requires_grad=True)))
        assert verdicts == [verdict], cls


def test_an_operator_of_a_package(install: Install) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    oplib = install(
        "oplib",
        """
import torch

@torch.library.custom_op("oplib::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return 2.0 * x

twice.register_autograd(lambda ctx, grad: 3.0 * grad)
""",
    )

    def run() -> None:
        oplib.twice(torch.ones(2, requires_grad=True))

    watched, verdicts = seen(run)
    assert verdicts == [] and watched.left_alone == ("`oplib::twice` of oplib",)
    assert seen(run, chosen=lambda name: name == "oplib::twice")[1] == ["fail"]

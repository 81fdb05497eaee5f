"""Where PyTorch is watched, and how each of these places is tested."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

from engine.foreign.seams import Part
from engine.foreign.torch_library import called_operator
from engine.foreign.torch_running import quiet
from engine.foreign.torch_steps import Steps


def parts(torch: ModuleType, begin: Callable[[Any], None], steps: Steps) -> Mapping[str, Part]:
    """Those of PyTorch. begin: replaces `apply` of `torch.autograd.Function`.

    steps: looks at `torch.optim`.
    """
    tests = _Tests(torch)
    return {
        "functions": Part(lambda: begin(tests.torch.autograd.Function), tests.functions),
        "operators": Part(_nothing, tests.operators),
        "passes": Part(_nothing, tests.passes),
        "steps": Part(
            steps.begin, tests.steps,
            lambda: steps.seen or tests.steps("torch._dynamo" in sys.modules),
        ),
    }  # fmt: skip


def _nothing() -> None:
    """What is watched by way of the functions."""


class _Tests:
    def __init__(self, torch: Any) -> None:
        self.torch = torch

    def functions(self, everything: bool) -> bool:
        """A call of a function, both by its class and by a name for its `apply`."""
        cls = self._function()
        apply = cls.apply
        with self._probing() as seen:
            cls.apply(self._leaf())
            apply(self._leaf())
        return [c for c, _ in seen] == [cls, cls]

    def operators(self, everything: bool) -> bool:
        """A call of an operator, of which is known what it calls."""
        library = self.torch.library.Library("adtool_probe", "FRAGMENT")
        try:
            library.define("twice(Tensor x) -> Tensor")
            library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
            self.torch.library.register_autograd(
                "adtool_probe::twice", lambda ctx, grad: grad * 2, lib=library
            )
            with self._probing() as seen:
                self.torch.ops.adtool_probe.twice(self._leaf())
            return len(seen) == 1 and called_operator(*seen[0]) is not None
        finally:
            library._destroy()

    def passes(self, everything: bool) -> bool:
        """The hooks of a node. PyTorch starts threads and devices for its first backward pass."""
        with self._probing():
            x = self._leaf()
            y = self._function().apply(x)
            told: list[Any] = []
            y.grad_fn.register_prehook(lambda cotangents: told.append(cotangents))
            y.grad_fn.register_hook(lambda grads, cotangents: told.append((grads, cotangents)))
            if not everything:
                return True
            y.backward()
            ((cotangent,), ((gradient,), _)) = told
            return bool(gradient == 2.0 and cotangent == 1.0)

    def steps(self, everything: bool) -> bool:
        """A step of an optimizer. The first one that is made imports modules for a second."""
        if not everything:
            return True
        x = self._leaf()
        x.grad = self.torch.ones_like(x)
        with self._probing() as seen:
            self.torch.optim.SGD([x], lr=0.5).step()
        return self.torch.optim.SGD in [a for a, _ in seen]

    def _function(self) -> Any:
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

        return type("Probe", (self.torch.autograd.Function,), {
            "forward": staticmethod(forward), "backward": staticmethod(backward),
        })  # fmt: skip

    def _leaf(self) -> Any:
        return self.torch.zeros((), dtype=self.torch.float32, device="cpu", requires_grad=True)

    @contextlib.contextmanager
    def _probing(self) -> Iterator[list[tuple[Any, tuple[Any, ...]]]]:
        """The calls that are noticed meanwhile in this thread, which nobody else is told of."""
        seen: list[tuple[Any, tuple[Any, ...]]] = []
        quiet.probe = seen
        try:
            with self.torch.inference_mode(False), self.torch.enable_grad():
                yield seen
        finally:
            quiet.probe = None

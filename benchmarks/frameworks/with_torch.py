"""PyTorch, eager, on all cores or on the GPU. A backward pass is that of a graph which is kept."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks.case import Ready
from benchmarks.data import (
    CAPTURED,
    PARTICLES,
    Springs,
    edges,
    random_springs,
    springs,
    systems,
    values,
)
from benchmarks.frameworks import Rows
from benchmarks.place import ON_GPU

DEVICE = "cuda" if ON_GPU else "cpu"


def wait(result: Any) -> None:
    """For all streams."""
    torch.cuda.synchronize()


def _tensor(a: Any, grad: bool = True) -> Any:
    return torch.from_numpy(a.copy()).to(DEVICE).requires_grad_(grad)


def _numpy(t: Any) -> Any:
    return t.detach().cpu().numpy().copy()


def _ready(f: Callable[..., Any], given: list[Any], seed: Any = None) -> Ready:
    """A function of tensors without a graph, and the backward pass of its graph."""
    leaves = [_tensor(a) for a in given]
    plain = [t.detach() for t in leaves]
    out = f(*leaves)
    kept = torch.ones_like(out) if seed is None else torch.from_numpy(seed.copy()).to(DEVICE)

    def forward() -> None:
        with torch.no_grad():
            f(*plain)

    def backward() -> None:
        for t in leaves:
            t.grad = None
        out.backward(kept, retain_graph=True)

    backward()
    return Ready(forward, backward, [_numpy(out)], [_numpy(t.grad) for t in leaves])


def _tiny(size: int) -> Ready:
    return _ready(lambda x: x * x, [np.full(1, 3.0, np.float32)])


def _saxpy(size: int) -> Ready:
    return _ready(lambda x, y: 2.5 * x + y, [values(size), values(size, 2)])


def _wave(v: Any) -> Any:
    return torch.sin(v) * torch.exp(-v * v) + torch.sqrt(v * v + 1.0)


def _elementwise(size: int) -> Ready:
    return _ready(_wave, [values(size)])


def _nbody(size: int) -> Ready:
    def pull(x: Any, mass: Any) -> Any:
        d = x[None, :, :] - x[:, None, :]
        s = (d * d).sum(2) + 0.01
        return (d * (mass[None, :] / (s * torch.sqrt(s)))[:, :, None]).sum(1)

    return _ready(pull, [values(3 * size).reshape(-1, 3), values(size, 2) + 1.5])


def _stencil(size: int) -> Ready:
    side = round(size**0.5)

    def step(u: Any) -> Any:
        middle = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        return torch.nn.functional.pad(middle + 0.1 * (around - 4.0 * middle), (1, 1, 1, 1))

    return _ready(step, [values(side * side).reshape(side, side)])


def _springs(size: int, drawn: Springs = springs) -> Ready:
    particles, first, second = drawn(size)
    i, j = (torch.from_numpy(a).long().to(DEVICE) for a in (first, second))

    def forces(x: Any) -> Any:
        d = x[j] - x[i]
        length = d.norm(dim=1, keepdim=True)
        f = d * (10.0 * (length - 0.5) / length)
        return torch.zeros_like(x).index_add(0, i, f).index_add(0, j, f, alpha=-1)

    x = values(3 * particles).reshape(-1, 3)
    return _ready(forces, [x], values(3 * particles, 4).reshape(-1, 3))


def _loop(size: int) -> Ready:
    def steps(v: Any) -> Any:
        for _ in range(16):
            v = v + 0.1 * torch.sin(v)
        return v

    return _ready(steps, [values(size)])


def _cross(size: int) -> Ready:
    def normal(a: Any, b: Any) -> Any:
        return torch.nn.functional.normalize(torch.linalg.cross(a, b), dim=1, eps=0.0)

    return _ready(normal, list(edges(size)), values(3 * size, 5).reshape(-1, 3))


def _solve(size: int) -> Ready:
    def solution(a: Any, b: Any) -> Any:
        return torch.cholesky_solve(b[:, :, None], torch.linalg.cholesky(a))[:, :, 0]

    return _ready(solution, list(systems(size)))


def _sum(size: int) -> Ready:
    return _ready(lambda x: (x * x).sum(), [values(size)])


def _maximum(size: int) -> Ready:
    return _ready(
        lambda x: (torch.sin(x) * torch.exp(x) + torch.sqrt(x + 2.0)).max(), [values(size)]
    )


def _iteration(size: int) -> Ready:
    target = _tensor(values(size), grad=False)
    w = torch.zeros(size, device=DEVICE, requires_grad=True)

    def forward() -> None:
        loss = ((w - target) ** 2).sum()
        loss.backward()
        with torch.no_grad():
            w.sub_(w.grad, alpha=0.01)
        w.grad = None

    forward()
    return Ready(forward, None)


def _trajectory(size: int) -> Ready:
    first, second = _tensor(values(PARTICLES)), _tensor(values(PARTICLES, 2))
    kept = torch.ones(PARTICLES, device=DEVICE)

    def record() -> Any:
        x, v = first, second
        for _ in range(size):
            v = v - 0.01 * torch.sin(x)
            x = x + 0.01 * v
        return x

    def both() -> None:
        first.grad = second.grad = None
        record().backward(kept)

    both()
    return Ready(record, both, [], [_numpy(first.grad)])


def _gradcheck(size: int) -> Ready:
    x = _tensor(values(size).astype("float64"))

    def forward() -> None:
        if not torch.autograd.gradcheck(_wave, (x,)):
            raise RuntimeError("a right gradient failed its check")

    forward()
    return Ready(forward, None)


def _captured(size: int) -> Ready:
    x = torch.full((1,), 3.0, device=DEVICE)
    y = torch.zeros(1, device=DEVICE)
    torch.mul(x, x, out=y)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CAPTURED):
            torch.mul(x, x, out=y)
    graph.replay()
    return Ready(graph.replay, None, [_numpy(y)])


def rows() -> Rows:
    """What PyTorch can do."""
    captured: Rows = {"captured": _captured} if ON_GPU else {}
    return captured | {
        "launch": _tiny, "saxpy": _saxpy, "elementwise": _elementwise, "nbody": _nbody,
        "stencil": _stencil, "springs": _springs,
        "random_springs": partial(_springs, drawn=random_springs),
        "loop": _loop, "cross": _cross, "sum": _sum,
        "solve": _solve,
        "maximum": _maximum, "iteration": _iteration, "trajectory": _trajectory,
        "gradcheck": _gradcheck,
    }  # fmt: skip

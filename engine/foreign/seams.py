"""The places at which frameworks are watched: one table, and a test of each.

A framework may lack such a place in some version, or no longer go by it. So each place is tested
where the framework is imported: what is watched there is made to happen, and must be noticed. What
fails is an `Unwatched`, which is told. A version that nobody has tried, and that passes, is
supported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import ModuleType

from engine.autograd.facts import Unwatched
from engine.classes import dataclass


@dataclass(frozen=True)
class Seam:
    """A place of a framework. name: what is watched there, in the user's words.

    key: what the framework's watcher calls it.
    """

    framework: str
    key: str
    name: str


SEAMS = (
    Seam("PyTorch", "functions", "calls of torch.autograd.Function"),
    Seam("PyTorch", "operators", "operators of torch.library with register_autograd"),
    Seam("PyTorch", "passes", "backward passes of functions"),
    Seam("PyTorch", "steps", "steps of torch.optim"),
    Seam("JAX", "vjp", "calls of functions with jax.custom_vjp"),
    Seam("JAX", "jvp", "calls of functions with jax.custom_jvp"),
    Seam("JAX", "programs", "programs inside of jit, scan, while_loop, cond and checkpoint"),
    Seam("JAX", "runs", "the values that compiled programs (jax.jit) are called with"),
    Seam("JAX", "derivatives", "the derivatives that a program asks of its rules"),
    Seam("Warp", "tapes", "the blocks and backward passes of warp.Tape"),
    Seam("Warp", "launches", "warp.launch on a tape"),
    Seam("Warp", "writes", "copies and writes of arrays"),
)


@dataclass(frozen=True)
class Part:
    """What a watcher does at a seam.

    begin: replaces something of the framework; raises where that is not there. test: has what is
    watched happen, and says whether it was noticed. It takes milliseconds, and neither starts
    devices nor threads of the framework, unless it is told to test everything. late: the test that
    could not be done then, once the program has run and has used it.
    """

    begin: Callable[[], None]
    test: Callable[[bool], bool]
    late: Callable[[], bool] = lambda: True


def begun(
    framework: str, module: ModuleType, parts: Mapping[str, Part], everything: bool = False
) -> Iterator[Unwatched]:
    """Begins to watch at each seam of a framework, and gives those where that does not work.

    everything: also tests what takes longer.
    """
    for key, part in parts.items():

        def both(part: Part = part) -> bool:
            part.begin()
            return part.test(everything)

        yield from _failed(framework, module, key, both)


def ended(framework: str, module: ModuleType, parts: Mapping[str, Part]) -> Iterator[Unwatched]:
    """The same of what could not be tested when it began; before watchers are removed."""
    for key, part in parts.items():
        yield from _failed(framework, module, key, part.late)


def unusable(framework: str, module: ModuleType, error: Exception) -> Unwatched:
    """Where nothing of a framework can be watched."""
    return Unwatched(framework, version_of(module), "all of it", told(error))


def _failed(
    framework: str, module: ModuleType, key: str, test: Callable[[], bool]
) -> Iterator[Unwatched]:
    try:
        why = "" if test() else "what happens there is not noticed"
    except Exception as error:
        why = told(error)
    if why:
        name = next(s.name for s in SEAMS if (s.framework, s.key) == (framework, key))
        yield Unwatched(framework, version_of(module), name, why)


def told(error: Exception) -> str:
    """An exception in a line."""
    return f"{type(error).__name__}: {(str(error).strip() or 'no message').splitlines()[0]}"


def version_of(module: ModuleType) -> str:
    """The version of a framework, "of unknown version" where it does not say."""
    found = getattr(module, "__version__", "")
    if not found:
        from engine.distributions import version_at  # takes 10 ms, for a few

        found = version_at(module.__name__, getattr(module, "__file__", None))
    return str(found or "of unknown version")

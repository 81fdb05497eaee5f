"""The door to what makes launches fast (`engine.accel`).

Launches, backward passes, captured graphs and new arrays ask here first. What is asked does all of
it or nothing, and nothing while anything observes. `engine.ready` loads that folder with the first
kernel. Where that folder is not there, or does not know
the interpreter, every method says that nothing was done, and all goes the plain way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class Accelerator:
    """What is asked. `engine.accel` puts its own functions in the place of these methods.

    needs_models: whether new arrays are kept as models of others, by their shapes.
    """

    needs_models = False

    def install(self, **functions: Any) -> None:
        """Puts functions in the place of methods, by name; the methods again for None."""
        for name, function in functions.items():
            if function is None:
                vars(self).pop(name, None)
            else:
                vars(self)[name] = function

    def try_run(
        self, kernel: Any, dim: Any, inputs: Any, outputs: Any, device: Any, stream: Any,
        record_tape: bool,
    ) -> bool | None:  # fmt: skip
        """Runs and records a launch, with what `launch` was given; True where it did.

        Raises LaunchError (E210) where a test in the kernel failed.
        """
        del kernel, dim, inputs, outputs, device, stream, record_tape
        return None

    def expect_passes(self) -> None:
        """To be told that a program is about to run backward passes, so that the first is fast."""

    def try_reverse(self, tape: Any, loss: Any, grads: Any) -> bool:
        """Runs the backward pass of a tape, with what `Tape.backward` was given; True where it did.

        Raises what that does.
        """
        del tape, loss, grads
        return False

    def try_zeros(self, shape: Any, dtype: Any, requires_grad: bool) -> Any:
        """An array of zeros on the host; None where none like it was made before."""
        del shape, dtype, requires_grad

    def graph_steps(self, operations: Sequence[Any]) -> list[Any]:
        """The operations of a captured graph, those that may run in one call as one."""
        return list(operations)

    def fused_graph(
        self, operations: Sequence[Any], steps: Sequence[Any],
        fresh: Sequence[Callable[[], None]],
    ) -> Callable[[], bool] | None:  # fmt: skip
        """What runs a captured graph without records, where nothing else has its tapes.

        steps: the operations as they run. fresh: what makes the tapes new that it makes. What comes
        gives False where it did nothing.
        """
        del operations, steps, fresh
        return None

    def compiled(self, plan: Any, forward: Any) -> None:
        """To be told of the plan of a kernel that was compiled, and of its forward form."""

    def repeated(self, cached_launch: Any) -> None:
        """To be told of a kernel and a grid that have run `config.native_after` times."""


accelerator = Accelerator()

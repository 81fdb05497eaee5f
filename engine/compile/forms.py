"""The forms in which a kernel runs: one table, of what each is made by, and how it runs.

A form that is added here, with the pass that makes it, can be compiled, run, watched and kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from engine.classes import dataclass

if TYPE_CHECKING:
    from engine.compile.pipeline import Variants
    from engine.ir.nodes import Function

Form = Literal["forward", "recorded", "adjoint", "checkpointed", "tangent", "accesses"]
Names = frozenset[str]


@dataclass(frozen=True)
class FormRow:
    """One form of a kernel.

    made: the IR, by passes. told_as: the form that users are told of. of_arrays: whether it depends
    on which arrays have gradients and are journaled. kept: whether later processes get what was
    compiled. in_order: whether its threads run one after the other. threads: the form whose threads
    it shares memory like, empty for its own. spare: the form that goes on where threads save too
    much, and goes_on: whether it is one.
    """

    made: Callable[[Variants, Names, Names], Function]
    told_as: str
    of_arrays: bool = True
    kept: bool = False
    in_order: bool = False
    threads: Literal["", "adjoint"] = ""
    spare: Literal["", "checkpointed"] = ""
    goes_on: bool = False

    @property
    def as_written(self) -> bool:
        """Whether it does what the kernel does: its threads are those that may race."""
        return self.told_as == "forward" and not self.in_order


def _accesses(kernel: Variants, wrt: Names, journaled: Names) -> Function:
    found = kernel.accesses_ir()
    assert found is not None
    return found.fn


FORMS: dict[Form, FormRow] = {
    # The kernel as written.
    "forward": FormRow(
        lambda kernel, wrt, journaled: kernel.ir, "forward", of_arrays=False,
    ),
    # The same, which leaves what its adjoint cannot read again in its journal, if there is any.
    "recorded": FormRow(
        lambda kernel, wrt, journaled: kernel.recorded_ir(wrt, journaled) or kernel.ir,
        "forward", kept=True, threads="adjoint",
    ),
    # The vector-Jacobian product. Takes gradients of arrays, too, and adds to them.
    "adjoint": FormRow(
        lambda kernel, wrt, journaled: kernel.adjoint_ir(wrt, journaled).fn,
        "adjoint", kept=True, spare="checkpointed",
    ),
    # The same, which saves less and computes more.
    "checkpointed": FormRow(
        lambda kernel, wrt, journaled: kernel.checkpointed_ir(wrt, journaled),
        "adjoint", goes_on=True,
    ),
    # The Jacobian-vector product, beside the kernel as written. Takes tangents of arrays, too.
    "tangent": FormRow(
        lambda kernel, wrt, journaled: kernel.tangent_ir(wrt), "tangent",
    ),
    # The kernel as written, which lists in its journal what each thread touches.
    "accesses": FormRow(_accesses, "forward", in_order=True),
}  # fmt: skip

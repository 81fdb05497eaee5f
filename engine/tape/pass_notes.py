"""Results of a program's backward passes as data, without NumPy or kernels."""

from __future__ import annotations

from engine.classes import dataclass

SIZE = 16  # bytes of a digest


@dataclass(frozen=True, slots=True)
class Given:
    """What a pass left in one gradient, or in its loss.

    name: of the first argument that the array was on the tape, as "argument `x` of kernel `f` in
    operation 3". dtype: of NumPy. contents: the bytes, in hexadecimal digits.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    contents: str


@dataclass(frozen=True, slots=True)
class PassNotes:
    """What passes of a program left, in their order.

    layouts: for each a digest of which gradients there are, values: one of what is in them; both
    in hexadecimal digits, one after another. file, line, given: of the pass that was asked for.
    whole: whether all passes were noted. launches: operations on the tapes of all passes, one as
    often as a pass ran through it.
    """

    layouts: str = ""
    values: str = ""
    file: str = ""
    line: int = 0
    given: tuple[Given, ...] = ()
    whole: bool = True
    launches: int = 0

    @property
    def count(self) -> int:
        """How many passes there are."""
        return len(self.layouts) // (2 * SIZE)

    def layout(self, number: int) -> str:
        """The digest of which gradients a pass left."""
        return self.layouts[2 * SIZE * number : 2 * SIZE * (number + 1)]

    def value(self, number: int) -> str:
        """The digest of what is in them."""
        return self.values[2 * SIZE * number : 2 * SIZE * (number + 1)]

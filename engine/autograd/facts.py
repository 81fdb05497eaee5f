"""Facts about faulty use of tapes in a program, as frozen data.

A fact of one detector stands in its module (`watch/detectors`). Here are those of several, those of
other finders, and what is read where nothing is wrong: that needs no detector, nor NumPy.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from engine.classes import dataclass
from engine.diagnostics import Span

# By name, of the modules that have been loaded: facts travel by the names of their classes.
FACTS: dict[str, type[Fact]] = {}


class Fact:
    """What a monitor finds out about a tape. A class of facts is a frozen dataclass of plain data.

    Facts travel to reports and captures: `engine.autograd.fact_named` gives a class by its name.
    """

    __slots__ = ()

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        known = FACTS.setdefault(cls.__name__, cls)
        if known.__module__ != cls.__module__:
            raise TypeError(f"{known.__module__} has facts named {cls.__name__}, too")
        FACTS[cls.__name__] = cls  # a class with slots takes the place of the one without

    def joined(self, other: Fact) -> Fact | None:
        """This and a later fact as one, where they are alike; else None."""
        return None


@dataclass(frozen=True, slots=True)
class Write:
    """Something that wrote to an array.

    name: of the kernel or operation. launch: its number on the tape, -1 for what is no launch of
    it. site: its call; None where it is not known, as of what went through a NumPy view. tape: the
    number of the tape that recorded it, where that is another one, and launch is its number there.
    """

    name: str = ""
    launch: int = -1
    site: Span | None = None
    tape: int = -1


@dataclass(frozen=True, slots=True)
class Overwritten(Fact):
    """An array that a launch read and that something overwrote before the backward pass.

    kind: `wrong`: later operations of the tape did, the backward pass reads what is there now, and
    the gradient is wrong because of it. `outside`: the same of what is not on the tape. `restored`:
    the pass restores what the launch read, and without that the gradient would be wrong. `within`:
    the launch itself overwrote what it had read, and saved it. `unneeded`: no gradient depends on
    what is lost.

    launch, kernel, site: what read it. argument: its parameter; variable: what the user passed
    there. first, last: the range of elements (components last); count: how many numbers.
    nbytes: what was saved, by all launches together. gradients: parameters of the reading launch
    whose gradients depend on it; passed: what the user passed for each, "" where that is not
    known. launches: how many of the tape are alike.
    """

    kind: Literal["wrong", "outside", "restored", "within", "unneeded"]
    launch: int
    kernel: str
    argument: str
    variable: str
    site: Span | None
    by: Write
    first: tuple[int, ...] = ()
    last: tuple[int, ...] = ()
    count: int = 0
    nbytes: int = 0
    gradients: tuple[str, ...] = ()
    launches: int = 1
    passed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Broken(Fact):
    """A way from an input to the loss that left the tape, and with it the gradient.

    kind: `launch`: a kernel ran outside of the `with` block; `copy`: through the host, or into an
    array without a gradient; `clone`: `clone(requires_grad=False)`; `cast`: an operation of a
    kernel has no derivative, and there is no other way; `graph`: a captured graph ran inside of the
    `with` block (name: its kernel, empty for a copy; site: the call that launched the graph);
    `command`: a recorded command did;
    `host`: the host read it (at `site`), and what it made of that came back (at `to`): the loss
    moves with it; `tape`: another tape computed an array (`name`) which the pass at `site` gave a
    gradient, and has never run backward. name: the kernel, the call's text, or the operation. site:
    its call, or the operation's place. to: else the first call on the tape that reads what had left
    it. inputs: what the user calls those that the loss depends on by it. partial: they all have a
    gradient that is not zero, by other ways.
    """

    kind: Literal["launch", "copy", "clone", "cast", "graph", "command", "host", "tape"]
    name: str
    site: Span | None
    inputs: tuple[str, ...] = ()
    partial: bool = False
    to: Span | None = None


@dataclass(frozen=True, slots=True)
class Made(Fact):
    """An array without requires_grad that a tape computes, and a launch of it then reads.

    argument: the launch's parameter; site: its call. at: where the array was made.
    """

    argument: str
    site: Span
    at: Span


@dataclass(frozen=True, slots=True)
class Recorded:
    """A function given to `Tape.record_func`. span: its definition; site: the call.

    lost: what it read in the backward pass and was something else when it was recorded.
    """

    name: str
    span: Span | None
    site: Span | None
    lost: Overwritten | None = None


@dataclass(frozen=True, slots=True)
class FunctionCheck(Fact):
    """Functions given to `Tape.record_func`, checked together by running the program again.

    ad, oracle: the derivative of the whole by the backward pass and by differences. tolerance:
    what it may be off by, relative to the latter.
    """

    functions: tuple[Recorded, ...]
    wrong: bool
    ad: float
    oracle: float
    tolerance: float | None = None


@dataclass(frozen=True, slots=True)
class Sought(Fact):
    """A tape that only another run of the program can check.

    tape: its number among those that the program made. derivative: of `value`, what its backward
    pass started from, along the direction in which its inputs would be moved. reads: where the host
    read what depends on them, while the tape recorded, or before it. seen: where it got views that
    it may have read then. functions: given to `record_func`. inputs: what the host read, as the
    user calls it. loose: the pass started from an array that nothing on the tape had written.
    late: inputs, by their number, that are to be moved when the tape reads them, whatever the host
    reads of them before.
    """

    tape: int
    value: float
    derivative: float
    reads: tuple[Span, ...] = ()
    functions: tuple[Recorded, ...] = ()
    inputs: tuple[str, ...] = ()
    loose: bool = False
    seen: tuple[Span, ...] = ()
    late: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a tape got from outside: which argument of which call, and what it held.

    meant: as a constant, by `stop_gradient`.
    """

    argument: int
    site: Span | None
    digest: str
    meant: bool = False


@dataclass(frozen=True, slots=True)
class Moved:
    """A run with the inputs of a tape moved: by what, what came out, and what from outside.

    seeds: a digest of the cotangents, without which values cannot be compared. threads: whether
    several threads ran, so that the tape of this number may be another one each time.
    """

    step: float
    value: float
    events: tuple[Event, ...]
    seeds: str = ""
    threads: bool = False


@dataclass(frozen=True, slots=True)
class Stale(Fact):
    """A backward pass whose gradient is a mixture.

    kind: `values`: it added to a gradient that an earlier pass had made at other values of the
    array. `twice`: it was run again on the same tape, at the same values, from the same arrays.
    `passed on`: it passed on what an earlier pass had left in the gradient of an array that the
    tape computes. `recompute`: what a launch read was not computed from the present inputs of the
    tape. `saved`: what the tape saved was not.

    array: what the user calls it, or the parameter. site: the backward pass; earlier: the one
    before. by: for `recompute`, the launch to run again. text: for `saved`, what the tape says.
    passes: how many are alike. used: the program was seen to change the array by that gradient.
    valid: whether `array` means it where the backward pass is called.
    """

    kind: Literal["values", "twice", "passed on", "recompute", "saved"]
    array: str
    site: Span | None
    earlier: Span | None = None
    by: Write = Write()
    text: str = ""
    passes: int = 1
    used: bool = False
    valid: bool = False

    def joined(self, other: Fact) -> Stale | None:
        if not isinstance(other, Stale):
            return None
        both = replace(self, passes=self.passes + other.passes, used=self.used or other.used)
        return both if both == replace(other, passes=both.passes, used=both.used) else None


@dataclass(frozen=True, slots=True)
class Change:
    """Something that was changed in place where a gradient written by hand did not expect it.

    kind: `input`: the function changed an argument and did not say so. `saved`: what it kept for
    its gradient was changed before that ran. `cotangent`, `kept`: the gradient itself changes what
    it was given, or what was kept for it. `leaf`: it adds to the gradient that an argument of the
    program has, to which the framework adds what it returns. name: of what was changed. site: where
    that was seen. wrong: whether a gradient is wrong because of it. span: the function to change,
    where that is not the gradient.
    """

    kind: Literal["input", "saved", "cotangent", "kept", "leaf"]
    name: str
    site: Span | None = None
    wrong: bool = True
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Handwritten:
    """Of an operation of another framework, whose gradient was written by hand.

    framework: its name. what: what it is there, as `function`. gradient: the name of what was
    written. missing: inputs by which it gives none (None), though results depend on them; zeros:
    those of them by which it gives zeros. changes: what is changed in place.
    """

    framework: str
    what: str
    gradient: str
    missing: tuple[str, ...] = ()
    zeros: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Reason:
    """Why another package's adjoint of a kernel is wrong, as far as is known.

    kind: one of a class of causes. text: a sentence without its end. span: what in the kernel.
    """

    kind: Literal["loop", "in place", "component", "no adjoint", "within", "no backward"]
    text: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Unwatched:
    """A place of a framework that a program used and that could not be watched there.

    framework, version: as they are told. seam: what was to be watched, in words. why: what is
    wrong.
    """

    framework: str
    version: str
    seam: str
    why: str


@dataclass(frozen=True, slots=True)
class Undifferentiated:
    """A function with a handwritten gradient that was called, and no call wanted the gradient.

    site: of the first call. calls: how many. why: `inputs`: none of the arguments of the first call
    requires a gradient; `mode`: the program has turned gradients off there.
    """

    framework: str
    name: str
    site: Span | None
    calls: int
    why: Literal["inputs", "mode"]


@dataclass(frozen=True, slots=True)
class Peer:
    """Another package whose adjoint of a kernel was compared with the engine's.

    name, version: of the package. wrong: its adjoint is not the derivative of the kernel, and the
    engine's is. reasons: why that may be, the likeliest first.
    """

    name: str
    version: str = ""
    wrong: bool = False
    reasons: tuple[Reason, ...] = ()

"""A job: which target to run and how to check it."""

from __future__ import annotations

from dataclasses import field
from fnmatch import fnmatchcase
from typing import Any, Literal

from adtool.overlay import Overlaid
from engine.classes import dataclass

_OF_TAPE = (
    "eps", "atol", "rtol", "kernels", "skip_kernels", "max_inputs", "max_outputs", "seed",
    "order", "end_to_end", "taylor",
)  # fmt: skip

_OF_FUNCTIONS = (
    "eps", "atol", "rtol", "kernels", "skip_kernels", "max_inputs", "max_outputs", "seed", "order",
)  # fmt: skip

_OF_DIVIDED = ("eps", "atol", "rtol", "max_inputs", "max_outputs", "seed")

# Operations that one run keeps traces of: they are told as text, of some hundred bytes each.
TRACES = 40_000

STDIN = "<stdin>"  # what Python calls a script that it reads from standard input


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """How tapes are checked; None leaves a choice to the engine.

    kernels, skip_kernels: glob patterns of kernel names. max_inputs, max_outputs:
    how many scalars of an array are compared, all for values <= 0. memory: GiB that
    copies of what launches read may take. bounds: whether launches are watched for accesses
    outside of arrays, and for races. tapes, launches: numbers, all where empty; a launch
    is `N`, of any tape, or `TAPE:N`. taylor: adds the remainder test. order: 2 checks second
    derivatives, too. durations: how many of the slowest checks are told. rerun: whether the target
    may be run again, with inputs moved; None if it is short. overwrites: what `engine.config` says
    when the target begins, None for the engine's own. trust: C++ text of a capture is compiled.
    alias: a name under which the target imports the engine (`engine.alias`). as_run: whether what
    its backward passes give is compared with a run that nothing watches; None if it is short, and
    compiled code would take launches of it over (`adtool.as_run`).
    """

    eps: float | None = None
    atol: float | None = None
    rtol: float | None = None
    kernels: tuple[str, ...] = ()
    skip_kernels: tuple[str, ...] = ()
    max_inputs: int = -1
    max_outputs: int = -1
    device: str | None = None
    seed: int = 0
    memory: float | None = None
    bounds: bool = True
    tapes: tuple[int, ...] = ()
    launches: tuple[str, ...] = ()
    order: int = 1
    end_to_end: bool = True
    durations: int = 0
    rerun: bool | None = None
    overwrites: Literal["restore", "present", "warn", "error"] | None = None
    taylor: bool = False
    trust: bool = False
    alias: str | None = None
    as_run: bool | None = None

    def launches_of(self, tape: int) -> tuple[int, ...] | None:
        """Which launches of a tape are checked, all where empty; None where the tape is not."""
        if self.tapes and tape not in self.tapes:
            return None
        if not self.launches:
            return ()
        pairs = [x.rpartition(":") for x in self.launches]
        return tuple(int(n) for t, _, n in pairs if t in ("", str(tape))) or None

    @property
    def partial(self) -> bool:
        """Whether only a part of what was recorded is checked."""
        return not self.checks_whole or bool(self.tapes)

    @property
    def checks_whole(self) -> bool:
        """Whether tapes are checked as wholes, too."""
        return self.end_to_end and not (self.kernels or self.skip_kernels or self.launches)

    @property
    def plain(self) -> bool:
        """Whether all is checked once, and nothing is asked for that is not told of every check."""
        more = self.tapes or self.taylor or self.order > 1 or self.durations
        return self.checks_whole and not more

    def of_tape(self) -> dict[str, Any]:
        """What `engine.autograd.check_tape` takes of them, by the same names."""
        return {name: getattr(self, name) for name in _OF_TAPE}

    def of_functions(self) -> dict[str, Any]:
        """What `engine.foreign.Watched.results` takes of them, by the same names."""
        return {name: getattr(self, name) for name in _OF_FUNCTIONS}

    def of_divided(self) -> dict[str, Any]:
        """What `engine.autograd.DividedCheck` takes of them, by the same names."""
        return {name: getattr(self, name) for name in _OF_DIVIDED}

    def names(self, kernel: str) -> bool:
        """Whether the user asked for this kernel by its name."""
        return any(fnmatchcase(kernel, p) for p in self.kernels)

    def deselects(self, kernel: str) -> bool:
        """Whether the user asked for this kernel to be left out."""
        if any(fnmatchcase(kernel, p) for p in self.skip_kernels):
            return True
        return bool(self.kernels) and not any(fnmatchcase(kernel, p) for p in self.kernels)


@dataclass(frozen=True, slots=True)
class JacobianOptions:
    """Which Jacobians to look at, and how.

    kernel: a pattern of names, empty for the one that there is a choice of (see
    `adtool.jacobian_choice`). inputs, outputs: names of arguments, all where empty. launch: numbers
    of tape and launch, None for the first one of the kernel. plot: the format of the plot, empty
    for none. error: what to plot in place of the Jacobian, or empty.
    """

    kernel: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    launch: tuple[int, int] | None = None
    plot: Literal["", "png", "svg", "pdf"] = ""
    error: Literal["", "relative", "absolute"] = ""


@dataclass(frozen=True, slots=True)
class Columns:
    """A share of the derivatives that Jacobians are made of: see `engine.autograd.Share`."""

    number: int
    count: int


@dataclass(frozen=True, slots=True)
class ListingOptions:
    """Which kernels' code to show, by a pattern of names, and at which stage."""

    kernel: str
    stage: Literal["ast", "ir", "adjoint", "tangent", "cpp", "cuda", "cuda-adjoint"] = "ir"


@dataclass(frozen=True, slots=True)
class Moving:
    """Which tape's inputs to move, step by step; see `adtool.steps`.

    sought: JSON of `engine.autograd.Sought`. seconds: that a run may take.
    """

    sought: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Running:
    """A run that nothing watches: see `adtool.as_run`.

    way: `native`: compiled code takes launches and passes over from the second launch on; `plain`:
    never; `bounds`: never, and kernels look for faults, as those that are checked do. wanted: the
    number of a backward pass whose gradients are handed back, -1 for none.
    """

    way: Literal["native", "plain", "bounds"]
    wanted: int = -1


@dataclass(frozen=True, slots=True)
class Target:
    """A script's path or a module's name (one of them), and its arguments.

    capture: the path is that of a capture, which is checked and not run. text: of a script that
    came from standard input, each byte as the character of its number; `script` is `STDIN` then.
    command: that the target was named to, for help that names a command line.
    """

    script: str | None = None
    module: str | None = None
    args: tuple[str, ...] = ()
    capture: bool = False
    text: str | None = None
    command: str = field(default="check", compare=False)

    @property
    def name(self) -> str:
        """The target as the user named it."""
        return self.script if self.script is not None else f"-m {self.module}"


@dataclass(frozen=True, slots=True)
class ReduceOptions:
    """Which finding of a capture is to stay: the first of a code, of all where it is empty.

    kernel: a pattern of names. most: checks that may be run.
    """

    code: str = ""
    kernel: str = "*"
    most: int = 300


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the check of a capture: some of its tapes, or of the launches of one.

    first, end: numbers of tapes. launches: from which to which of the only tape, which is not
    checked as a whole then. verdicts: of all its launches, by number, where it is to be checked as
    a whole and nothing else.
    """

    first: int
    end: int
    launches: tuple[int, int] | None = None
    verdicts: tuple[tuple[int, tuple[str, ...]], ...] | None = None


@dataclass(frozen=True, slots=True)
class Keep:
    """A file to write a capture to; of more bytes of contents, or operations, only its head.

    root: the folder, with a separator at its end, that names of files are relative to.
    """

    path: str
    most_bytes: int
    most_records: int
    root: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """A target with its options, as it is handed to the child process.

    jacobian, listing, moving: what to do in place of a check. suspects: arguments of the target
    that are options of the tool. check: whether to check at all. traces: how many operations of
    the tapes to trace and to hand back. keep: where to write a capture to, if somewhere.
    part: of a capture, what to check, where that is not all. columns: of its Jacobians, which
    derivatives to evaluate and to hand back, in place of looking at them. derivatives: JSON of
    those that are known (`engine.autograd.Derivative`).
    reduce: of a capture, what is to stay. pictures: of how many checked launches to hand back the
    Jacobians (`adtool.matrices`). overlay: files of the program that have another content than on
    disk. processes: how many may share its checks, 0 for one
    a processor. running: how to run it, where that is all and nothing is to watch it.
    """

    target: Target
    options: CheckOptions
    jacobian: JacobianOptions | None = None
    listing: ListingOptions | None = None
    moving: Moving | None = None
    suspects: tuple[str, ...] = ()
    check: bool = True
    traces: int = 0
    keep: Keep | None = None
    reduce: ReduceOptions | None = None
    part: Part | None = None
    pictures: int = 0
    columns: Columns | None = None
    derivatives: str = ""
    overlay: tuple[Overlaid, ...] = ()
    processes: int = 1
    running: Running | None = None

"""Runs the target in a child process and collects the outcome.

The child is the leader of its own session, so that it can be stopped together with all that
it started. Nothing passes between the two but JSON and the status page, both in
a directory that only the user can read.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from adtool import codec, files, interrupts, status, temporary
from adtool.exits import ToolError, because
from adtool.job import STDIN, CheckOptions, Job, Target
from adtool.overlay import enter
from adtool.report import Failure, Finding
from adtool.scripts import require_script
from adtool.starter import Run, Starter
from engine.classes import dataclass
from engine.private import Untrusted
from engine.private import private_folder as trusted_folder

if TYPE_CHECKING:
    from adtool.accuracy.entries import Expected
    from adtool.as_run import AsRun
    from adtool.captures.head import Written
    from adtool.faults import Seen
    from adtool.jacobian_report import JacobianReport
    from adtool.kernel_listing import KernelListing
    from adtool.matrices import LaunchPictures
    from adtool.outcome import Outcome, Settled
    from adtool.report import Duration
    from engine.autograd import PassNotes, TapeResult, Undifferentiated, Unwatched

_TEMPORARY = "set TMPDIR to a writable folder with free space"
_POLL = 0.02  # seconds between two looks at the status page
_GRACE = 2.0  # seconds that an interrupted target gets to clean up


@dataclass(frozen=True, slots=True)
class Session:
    """A target's run: its checked tapes, and why it failed, if it did.

    kernels: names of all kernels on the tapes. seconds: wall time. jacobian, plot, listing: what
    the job asked for in place of a check. recorded, processes, durations, strayed, script_seconds,
    settled, pictures, notes, left_alone, undifferentiated, passes, unwatched, frameworks,
    unimported: see `Outcome`.
    faults: what launches did wrong, on a tape or not. traces: JSON of `adtool.traces.Traces`, not
    read yet, where the job asked for it and the script came to its end. written: of a capture,
    where the job asked for one. found: what it was reduced to. part: whether it is but one test of
    a program, so that what is not found may be elsewhere. expected: what a baseline says of it.
    accuracy: that each pair must reach (`--gate`). derivatives: JSON of a share of those that
    Jacobians are made of (`Job.columns`). forgiven: kernels of whose faults nobody wants to hear,
    so that they hide nothing else. as_run: what runs that nothing watched say (`adtool.as_run`).
    """

    target: Target
    options: CheckOptions
    tapes: tuple[TapeResult, ...]
    kernels: tuple[str, ...] = ()
    failure: Failure | None = None
    seconds: float = 0.0
    jacobian: JacobianReport | None = None
    plot: bytes = b""
    recorded: tuple[int, ...] = ()
    processes: int = 0
    durations: tuple[Duration, ...] = ()
    strayed: tuple[str, ...] = ()
    listing: KernelListing | None = None
    script_seconds: float = 0.0
    settled: Settled | None = None
    faults: tuple[Seen, ...] = ()
    traces: str = ""
    written: Written | None = None
    found: Finding | None = None
    pictures: tuple[LaunchPictures, ...] = ()
    part: bool = False
    expected: Expected | None = None
    accuracy: float | None = None
    derivatives: str = ""
    forgiven: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    left_alone: tuple[str, ...] = ()
    undifferentiated: tuple[Undifferentiated, ...] = ()
    passes: PassNotes | None = None
    as_run: AsRun | None = None
    unwatched: tuple[Unwatched, ...] = ()
    frameworks: tuple[str, ...] = ()
    unimported: tuple[tuple[str, str], ...] = ()


def run_session(
    job: Job,
    *,
    timeout: float = 0.0,
    stdout_to_stderr: bool = False,
    watch: Callable[[status.Status], None] | None = None,
    silent: bool = False,
    printed: tuple[BinaryIO, BinaryIO] | None = None,
    starter: Starter | None = None,
) -> Session:
    """Runs the job's target and has its tapes checked.

    timeout: seconds for script and checks together, 0 for no limit. stdout_to_stderr:
    keeps standard output free of what the target prints. watch: called twenty times a
    second with the child's status. silent: what the target prints and reads is nothing.
    printed: files for its standard output and standard error, where it reads nothing either.
    starter: of all runs of a target, where there is more than one.

    Raises:
        ToolError: the script is not there to be run, or the system does not let it run.
    """
    with ExitStack() as stack:
        starter = starter or stack.enter_context(Starter())
        streams = None if silent else (0, 1, 2)
        if printed is not None:
            nothing = stack.enter_context(open(os.devnull, "rb"))
            streams = nothing.fileno(), printed[0].fileno(), printed[1].fileno()
        elif stdout_to_stderr and not silent:
            streams = 0, _stderr_descriptor(), 2
        with BegunSession(job, starter, streams) as begun:
            return begun.finished(timeout, watch)


class BegunSession:
    """A target that runs in a child process. As a context: afterwards nothing of it is left."""

    def __init__(
        self, job: Job, starter: Starter, streams: tuple[int, int, int] | None = None
    ) -> None:
        """streams: as of `Starter.run`, None: it prints and reads nothing. Raises as that does, and
        `run_session`.
        """
        require_script(job.target)
        if job.target.text is not None:  # what is told of it shows its lines
            enter(STDIN, job.target.text.encode("latin-1"))
        self.job, self._silent = job, streams is None
        self._began = time.monotonic()
        with ExitStack() as stack:
            self._folder = folder = stack.enter_context(private_folder())
            with _blaming(f"cannot write to the temporary folder {folder.parent}", _TEMPORARY):
                (folder / files.JOB).write_text(codec.dumps(job), encoding="ascii")
                status.create(folder / files.STATUS)
            with _blaming("the process of the script cannot be started"):
                if streams is not None:
                    self.process = starter.run(folder, streams)
                else:
                    with open(os.devnull, "r+b") as nothing:
                        self.process = starter.run(folder, [nothing.fileno()] * 3)
            self._left = stack.pop_all()

    def __enter__(self) -> BegunSession:
        return self

    def __exit__(self, *about: object) -> None:
        self.process.end()
        self._left.close()

    def finished(
        self, timeout: float = 0.0, watch: Callable[[status.Status], None] | None = None
    ) -> Session:
        """Waits for its end. timeout, watch: see `run_session`. Raises ToolError."""
        job, folder = self.job, self._folder
        deadline = self._began + timeout if timeout > 0 else None
        stopped, last = _wait(self.process, deadline, folder, watch, not self._silent)
        done, failure = _conclude(self.process.wait(), stopped, last, timeout, folder)
        noted = _faults_of(job.target, done) if job.target.capture else _faults_in(folder)
        looked = job.jacobian and job.columns is None and failure is None
        seen, plot = _jacobian_in(folder) if looked else (None, b"")
        listing = _listing(folder) if job.listing and failure is None else None
        traces = ""
        with suppress(OSError, UnicodeDecodeError):  # not there where the script failed
            traces = files.text(folder / files.TRACES)
        derivatives = ""
        with suppress(OSError, UnicodeDecodeError):
            derivatives = files.text(folder / files.DERIVATIVES)
        return Session(
            job.target, job.options, done.tapes, done.kernels, failure,
            time.monotonic() - self._began, seen, plot,
            done.recorded, done.processes, done.durations, done.strayed, listing,
            done.script_seconds, done.settled, noted, traces, done.written, done.found,
            done.pictures, derivatives=derivatives, notes=done.notes,
            left_alone=done.left_alone, undifferentiated=done.undifferentiated,
            passes=done.passes, unwatched=done.unwatched,
            frameworks=done.frameworks, unimported=done.unimported,
        )  # fmt: skip


def _faults_of(target: Target, done: Outcome) -> tuple[Seen, ...]:
    """What was seen when a capture was made; from here on, its files say what it has of them.

    done: the outcome of its check, which names files.
    """
    from adtool.captures import texts
    from adtool.captures.container import CaptureReader
    from adtool.captures.run import Run

    seen: tuple[Seen, ...] = ()
    # What is wrong with it is told by the child.
    with suppress(ToolError), CaptureReader(Path(str(target.script))) as reader:
        run = Run(reader)
        run.tell_sources()
        seen = run.faults()
    texts.bar_in(done)
    return seen


def _faults_in(folder: Path) -> tuple[Seen, ...]:
    from adtool import faults

    return faults.read(folder)


def _jacobian_in(folder: Path) -> tuple[JacobianReport, bytes]:
    from adtool.jacobian_report import JacobianReport

    with _blaming("the results cannot be read", _TEMPORARY):
        report = codec.loads(JacobianReport, files.text(folder / files.JACOBIAN))
        plot = folder / files.PLOT
        return report, files.content(plot) if plot.exists() else b""


def _listing(folder: Path) -> KernelListing:
    from adtool.kernel_listing import KernelListing

    with _blaming("the results cannot be read", _TEMPORARY):
        return codec.loads(KernelListing, files.text(folder / files.LISTING))


@contextmanager
def _blaming(message: str, help: str = "") -> Iterator[None]:
    """Says in the user's terms what the system refused."""
    try:
        yield
    except OSError as error:
        raise ToolError(f"{message}: {because(error)}", help, "environment") from None


@contextmanager
def private_folder() -> Iterator[Path]:
    """A temporary folder that only the user can read."""
    with ExitStack() as stack:
        with _blaming("adtool cannot create a temporary folder", _TEMPORARY):
            folder = stack.enter_context(temporary.folder())
        try:
            trusted_folder(str(folder))
        except Untrusted as error:  # it holds what is run, and what came of it
            raise ToolError(
                f"the temporary folder is not safe from other users: `{error.path}` {error.why}",
                (
                    "set TMPDIR to a folder that other users cannot write to, or set the sticky "
                    "bit of this folder"
                ),
                "environment",
            ) from None
        yield folder


def _stderr_descriptor() -> int:
    with suppress(Exception):  # a replaced sys.stderr may have no descriptor
        sys.stderr.flush()
        return sys.stderr.fileno()
    return 2


def _wait(
    process: Run,
    deadline: float | None,
    folder: Path,
    watch: Callable[[status.Status], None] | None,
    shown: bool,
) -> tuple[str, status.Status]:
    """Waits for the child's end. Says what stopped it ("", "timeout" or a signal's name), and
    what it did last: before it was stopped, since an interrupted target unwinds to its end.

    shown: whether somebody will look at it.
    """
    stopped = ""
    with interrupts.listening() as ear:
        try:
            # What the child's results are read and told with takes as long to import here as there.
            import adtool.assemble
            import adtool.last
            import adtool.outcome
            from adtool.rules import load_rules

            load_rules()
            codec.prepare(adtool.outcome.Outcome)
            if shown:
                import adtool.render.text

            while not stopped:
                left = None if deadline is None else deadline - time.monotonic()
                pause = min(x for x in (left, _POLL if watch else None, 3600.0) if x is not None)
                if ear.heard:
                    stopped = signal.Signals(ear.heard).name
                elif left is not None and left <= 0:
                    stopped = "timeout"
                else:
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(pause, ear.descriptor)
                        break
                    if watch:
                        watch(status.read(folder / files.STATUS))
        finally:
            last = status.read(folder / files.STATUS)
            _end(process, stopped, last, ear)
    return stopped, last


def _end(process: Run, stopped: str, last: status.Status, ear: interrupts.listening) -> None:
    """Ends the child with all that it started, unless it has come to its end by itself."""
    if process.returncode is None:
        # Past the limit, what was checked by then is asked for; a script is just ended. What has
        # not begun has nothing to clean up, and Python as it starts would print a traceback.
        begun = last.phase != status.START and stopped != "timeout"
        if stopped and (begun or last.phase == status.CHECK):
            process.signal(signal.SIGINT)  # lets it clean up
            ear.rest()
            if not ear.again:  # else the user is in a hurry
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_GRACE, ear.descriptor)
        # What it has started may be left, where it came to its end. The number of a group is not
        # used again as long as the group is there.
        process.stop()


def _outcome(folder: Path) -> Outcome:
    """What the child has written. Raises OSError, UnicodeDecodeError, CodecError."""
    from adtool.outcome import Outcome, unfolded

    found = codec.loads(Outcome, files.text(folder / files.RESULT))
    try:
        return unfolded(found)
    except ValueError as wrong:
        raise codec.CodecError(f"$.likenesses: {wrong}") from None


def _conclude(
    code: int, stopped: str, last: status.Status, timeout: float, folder: Path
) -> tuple[Outcome, Failure | None]:
    from adtool import endings
    from adtool.outcome import Outcome

    nothing = Outcome("interrupted")
    if stopped:
        found = nothing
        with suppress(OSError, UnicodeDecodeError, codec.CodecError):  # it may not have come so far
            found = _outcome(folder)
        if not any(t.launches for t in found.tapes):
            found = nothing
        some = found is not nothing
        if stopped == "timeout":
            return found, endings.timed_out(last, timeout, some)
        return found, endings.interrupted(last, stopped, some)
    try:
        outcome = _outcome(folder)
    except OSError:
        if not folder.is_dir():
            return nothing, endings.removed(str(folder))
        crash = ""
        with suppress(OSError):  # not there where the child did not even start
            crash = files.content(folder / files.CRASH).decode("utf-8", "replace")
        return nothing, endings.died(code, last, crash)
    except (codec.CodecError, UnicodeDecodeError) as error:
        return nothing, Failure("internal", f"the child's result cannot be read: {error}")
    return outcome, endings.reported(outcome)

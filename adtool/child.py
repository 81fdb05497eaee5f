"""The child process: runs the target, checks its tapes, and writes the outcome to a file.

`starter` starts it, by the text `_BOOT`.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

import engine
from adtool import (
    codec,
    endings,
    files,
    forks,
    memory,
    overlay,
    parents,
    places,
    status,
    strays,
    streams,
    teardown,
    traces,
)
from adtool.captures.run import write_tapes
from adtool.check_progress import CheckProgress
from adtool.checking import (
    calm,
    check_tapes,
    kernels_of,
    launches_of,
    recorded,
    refused,
    with_functions,
)
from adtool.exits import ToolError, because
from adtool.faults import FaultLog
from adtool.fork_server import anew
from adtool.frameworks import in_place_of_engine
from adtool.job import Columns, JacobianOptions, Job, ListingOptions, Running
from adtool.matrices import MatrixGallery
from adtool.outcome import Outcome, Settled, folded
from adtool.program_modules import ProgramModules, Restart
from adtool.raised import is_normal, text_of
from adtool.reruns import SHORT, is_taken_over
from adtool.sharing import usual_processes
from adtool.surroundings import LastWords, Surroundings
from adtool.target import TargetError, first_folder, join_threads, run_target
from adtool.target_failure import outcome_of
from engine.alias import install
from engine.archive import ArchiveError
from engine.autograd import Derivative, Enough, Share, Witness
from engine.characters import clean
from engine.foreign import Watched, watching

if TYPE_CHECKING:
    from engine import CapturedTape
    from engine.autograd import PassLog
    from engine.diagnostics import Site

OLD = 100  # collections of younger garbage before one of the oldest


def main(
    folder: str, path: list[str], given: list[str], started: tuple[str, ...], choice: list[str]
) -> None:
    """Does the job described in `folder`.

    path: the target's `sys.path`. given: those of it that PYTHONPATH names. started, choice: as of
    `ProgramModules`.
    """
    here = Path(folder)
    owner = os.getpid()
    own = tuple(sys.modules.values())
    gc.freeze()  # what is of the tool is looked through for garbage no more
    gc.enable()
    streams.occupy()
    # Never closed: it is written by the handler of a fatal signal.
    faulthandler.enable(os.open(here / files.CRASH, os.O_WRONLY | os.O_CREAT, 0o600))
    job = codec.loads(Job, (here / files.JOB).read_text())
    page = status.StatusWriter(here / files.STATUS)
    first = None if job.target.capture else first_folder(job.target)
    modules = ProgramModules([*([] if first is None else [first]), *given], started, choice)
    sys.path[:] = path
    around = Surroundings()
    last = LastWords(folder, files.RESULT, codec.brief(folded(_CHANGED)).encode("ascii"))
    try:
        outcome = _outcome(job, page, owner, here, modules, around)
        modules.close()
        page.phase(status.END)
        teardown.keep(own)  # what is of the program is taken apart as by plain Python
        try:
            _write(outcome, here)
        except OSError as error:
            with contextlib.suppress(OSError):  # then the parent sees that there is no outcome
                _write(_unwritten(error), here)
    except Exception:
        with contextlib.suppress(Exception):  # then the parent sees that there is no outcome
            last.say()


_CHANGED = Outcome(
    "target",
    "the script changed Python, so adtool cannot report its results",
    "restore the changes in the script: `with unittest.mock.patch(...):` does so",
)


def _outcome(
    job: Job, page: status.StatusWriter, owner: int, here: Path, modules: ProgramModules,
    around: Surroundings,
) -> Outcome:  # fmt: skip
    begin = places.here(), dict(os.environ)
    try:
        try:
            # Only adtool sends it one. A job in the background inherits that they are ignored.
            parents.heed_interrupts()
            return _run(job, page, owner, here, modules, around)
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # what there is by now is written
    except Restart as restart:
        if os.getpid() != owner:  # one of several runs: who waits for it starts anew
            (here / files.AGAIN).write_text(restart.choice)
            return Outcome("interrupted")
        os.chdir(begin[0] or os.sep)
        os.execve(sys.executable, anew(str(here), restart.choice), begin[1])
    except KeyboardInterrupt:
        return Outcome("interrupted")
    except OSError as error:  # of a folder that takes no results: the target's own is told by it
        return around.blame() or _unwritten(error)
    except Exception:
        return around.blame() or Outcome(
            "internal", "a bug in adtool", detail=traceback.format_exc()
        )


def _unwritten(error: OSError) -> Outcome:
    return Outcome(
        "environment",
        f"the results cannot be written: {because(error)}",
        "set TMPDIR to a writable folder with free space",
    )


def _write(outcome: Outcome, folder: Path) -> None:
    partial = folder / (files.RESULT + ".part")
    partial.write_text(codec.brief(folded(outcome)), encoding="ascii")
    os.replace(partial, folder / files.RESULT)


def _run(
    job: Job,
    page: status.StatusWriter,
    owner: int,
    folder: Path,
    modules: ProgramModules,
    around: Surroundings,
) -> Outcome:
    if job.target.capture:
        return _check_capture(job, page, folder)
    page.phase(status.SCRIPT)
    # What is recorded lives on, and is looked through for garbage less often than by itself.
    gc.set_threshold(*gc.get_threshold()[:2], OLD)
    overlay.install(job.overlay)
    error: BaseException | None = None

    def on_launch(kernel: engine.Kernel, index: int, site: Site | None) -> None:
        code = getattr(kernel.func, "__code__", None)
        here = ("", 0) if site is None else (site.code.co_filename, site.line)
        defined = () if code is None else (code.co_filename, code.co_firstlineno)
        page.launch(kernel.key, index, *here, *defined)

    def wants(kernel: str) -> bool:
        looked_at = job.check or job.keep is not None
        return looked_at and not job.options.deselects(kernel)

    engine.config.snapshot_limit_bytes = memory.limit(
        job.options.memory, engine.config.snapshot_limit_bytes
    )
    if job.options.alias is not None:
        install(job.options.alias)
    if job.options.overwrites is not None:
        engine.config.overwrites = job.options.overwrites
    if job.running is not None:
        return _run_plainly(job, job.running, owner, modules, around)
    mover, witness = None, Witness()
    if job.moving is not None:
        from adtool.steps import next_step

        step = next_step(job.moving, folder)
        if isinstance(step, Settled):
            return Outcome("done", settled=step)
        owner, mover = os.getpid(), step
    noted = FaultLog(folder)
    start = time.monotonic()
    with (
        _functions(job) as watched,
        engine.capturing(on_launch, wants, mover or witness, job.traces) as capture,
        _looking_for_faults(job, noted),
        _noting_passes(job) as log,
    ):
        noted.capture = capture
        try:
            _use_device(job.options.device)
            with forks.counting(), _modules_kept(modules.names), modules.given(), around:
                run_target(job.target)
        except Enough:
            pass
        except BaseException as raised:
            error = raised
        if isinstance(error, SystemExit) and is_normal(error):
            error = None
            join_threads()
    seconds = time.monotonic() - start
    gc.freeze()  # what the target left is looked through no more
    if os.getpid() != owner:  # a fork of the target that ran off its end: not ours to report
        _end_fork(error)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the target may have closed it
            stream.flush()
    noted.close()
    modules.require_meant(error)
    if mover is not None:
        return Outcome("done", moved=mover.result)
    frameworks = () if capture.tapes else in_place_of_engine(job.target, job.options.alias)
    if error is not None:
        outcome = outcome_of(error, modules, job, () if mover else witness.facts)
    elif frameworks and (job.jacobian is not None or job.listing is not None):
        command = "show" if job.jacobian is None else "jacobian"
        outcome = Outcome("target", *endings.no_launch(command, frameworks))
    elif job.jacobian is not None:
        with _looking_for_faults(job, None):
            outcome = _look(capture.tapes, job.jacobian, page, folder)
    elif job.listing is not None:
        outcome = _list(capture.tapes, job.listing, folder)
    else:

        def trace() -> None:
            if job.traces:
                traces.write(capture.tapes, job.traces, folder / files.TRACES)

        tapes = recorded(capture.tapes)
        written = None if job.keep is None else write_tapes(tapes, job.keep)
        if log is not None and is_taken_over(log.launches, seconds, job) and memory.is_small():
            page.ready()
        if job.check:
            with _looking_for_faults(job, None):
                outcome = _check(capture.tapes, job, page, trace, watched)
        else:
            trace()
            outcome = Outcome("done", kernels=kernels_of(tapes), recorded=launches_of(tapes))
        outcome = replace(outcome, written=written)
    strayed = strays.unused(job.target, job.suspects)
    outcome = replace(outcome, strayed=strayed, script_seconds=seconds, frameworks=frameworks)
    return outcome if log is None else replace(outcome, passes=log.notes())


@contextlib.contextmanager
def _noting(wanted: int = -1, seconds: float = 0.0) -> Iterator[PassLog]:
    """Notes what backward passes give; one of them with all values."""
    from engine.autograd import PassLog, noting  # late: not all runs need it

    log = PassLog(wanted, seconds)
    with noting(log):
        yield log


def _noting_passes(job: Job) -> contextlib.AbstractContextManager[PassLog | None]:
    """Notes them in the run that is checked, where an unwatched one may be compared with it."""
    wanted, checked = job.options.as_run, job.check and job.moving is None and job.jacobian is None
    if not checked or wanted is False:
        return contextlib.nullcontext()
    return _noting(seconds=0.0 if wanted else SHORT)


def _run_plainly(
    job: Job, running: Running, owner: int, modules: ProgramModules, around: Surroundings
) -> Outcome:
    """Runs the target with nothing that watches it, and gives what its passes gave."""
    if engine.config.native_after >= 0:  # else the user wants none
        engine.config.native_after = 0 if running.way == "native" else -1
    error: BaseException | None = None
    start = time.monotonic()
    bounds = (
        engine.watching(None, races=False) if running.way == "bounds" else contextlib.nullcontext()
    )
    with _noting(running.wanted) as log, bounds:
        try:
            _use_device(job.options.device)
            with _modules_kept(modules.names), modules.given(), around:
                run_target(job.target)
        except BaseException as raised:
            error = raised
        if isinstance(error, SystemExit) and is_normal(error):
            error = None
            join_threads()
    if os.getpid() != owner:
        _end_fork(error)
    modules.require_meant(error)
    if error is not None:
        return outcome_of(error, modules, job)
    return Outcome("done", script_seconds=time.monotonic() - start, passes=log.notes())


def _check_capture(job: Job, page: status.StatusWriter, folder: Path) -> Outcome:
    """What is asked for of a capture. Its kernels may do anything, so they are watched."""
    from adtool.captures.container import CaptureReader
    from adtool.captures.run import Run

    page.phase(status.CHECK)
    limit = memory.limit(job.options.memory, memory.CAPTURED)
    try:
        with (
            CaptureReader(Path(str(job.target.script))) as reader,
            engine.watching(None, races=False),
        ):
            run = Run(reader)
            run.tell_sources()
            engine.config.overwrites = job.options.overwrites or run.archive().overwrites
            if job.reduce is not None:
                from adtool.captures.reduction import reduced

                return reduced(run, job, page)
            tapes = run.tapes(job.options.trust, limit)
            found = run.traces()
            if found is not None and job.part is None:
                (folder / files.TRACES).write_text(codec.dumps(found), encoding="ascii")
            if job.jacobian is not None:
                return _look(tapes, job.jacobian, page, folder, _share(job))
            if job.part is not None:
                from adtool.captures.parts import check_part

                return check_part(tapes, job.part, job.options, page)
            written = None if job.keep is None else write_tapes(tapes, job.keep)
            return replace(_check(tapes, job, page), written=written)
    except ToolError as error:
        return Outcome("target", error.message, error.help)
    except ArchiveError as error:  # contents are read when they are needed
        return Outcome("target", f"`{job.target.script}` cannot be used: {error}")


def _functions(job: Job) -> contextlib.AbstractContextManager[Watched]:
    """Finds functions of frameworks whose gradients are written by hand, for a check of them."""
    if not job.check or job.moving is not None or job.jacobian is not None:
        return contextlib.nullcontext(Watched())
    return watching(lambda name: not job.options.deselects(name), chosen=job.options.names)


def _looking_for_faults(
    job: Job, noted: FaultLog | None
) -> contextlib.AbstractContextManager[None]:
    """Lets no launch damage memory, if the job asks for it; what they do wrong is noted."""
    looked_at = job.check or job.keep is not None or job.jacobian is not None
    wanted = job.options.bounds and looked_at and job.moving is None
    if not wanted:
        return contextlib.nullcontext()
    return engine.watching(noted, races=noted is not None)


def _look(
    captured: list[CapturedTape], options: JacobianOptions, page: status.StatusWriter,
    folder: Path, share: Share | None = None,
) -> Outcome:  # fmt: skip
    from adtool.jacobian_report import look, why_none

    signal.alarm(0)
    tapes = recorded(captured)
    page.check(0, len(tapes), 0, 0, 1, options.kernel)
    try:
        with calm():
            failed = look(tapes, options, folder, share or Share())
    except engine.EngineError as error:
        return refused(error, why_none(error, options))
    return failed or Outcome("done", kernels=kernels_of(tapes))


def _share(job: Job) -> Share:
    known = codec.loads(tuple[Derivative, ...], job.derivatives) if job.derivatives else ()
    mine = job.columns or Columns(0, 1)
    return Share(mine.number, mine.count, known)


def _list(captured: list[CapturedTape], options: ListingOptions, folder: Path) -> Outcome:

    from adtool.kernel_listing import list_kernels

    try:
        with calm():
            failed = list_kernels(captured, options, folder)
    except engine.EngineError as error:
        return refused(error, f"kernel `{options.kernel}` has no stage {options.stage}")
    return failed or Outcome("done")


@contextlib.contextmanager
def _modules_kept(own: frozenset[str]) -> Iterator[None]:
    """Afterwards, imports find what the tool itself runs on, whatever the target did to them.

    That is also what the engine has loaded meanwhile: its packages still have such modules. own:
    names of which the program's stay.
    """
    kept = {"__main__", *own}
    before = {n: m for n, m in sys.modules.items() if n.partition(".")[0] not in kept}
    try:
        yield
    finally:
        sys.modules.update(before)
        if engine.__name__ not in own:
            _find_below(engine)


def _find_below(package: ModuleType) -> None:
    """Lets imports find the modules that a package has loaded."""
    for word, module in list(vars(package).items()):
        name = f"{package.__name__}.{word}"
        if isinstance(module, ModuleType) and module.__name__ == name:
            sys.modules[name] = module
            _find_below(module)


def _end_fork(error: BaseException | None) -> NoReturn:
    """Ends a forked process as plain `python` would."""
    if error is None:
        sys.exit(0)
    if not isinstance(error, SystemExit):
        sys.stderr.write(clean(text_of(error)))
        sys.exit(1)
    raise error


def _use_device(name: str | None) -> None:
    if name is None:
        return
    try:
        engine.set_device(name)
    except engine.EngineError as error:
        first = error.diagnostics[0]
        why = "".join(f" ({note})" for note in first.notes)
        raise TargetError(f"--device {name}: {first.message}{why}", first.help) from None


def _check(
    captured: list[CapturedTape], job: Job, page: status.StatusWriter,
    meanwhile: Callable[[], None] | None = None, watched: Watched | None = None,
) -> Outcome:  # fmt: skip
    signal.alarm(0)  # one that the target set for itself
    progress = CheckProgress(page, recorded(captured), job.options)
    gallery = MatrixGallery(job.pictures) if job.pictures else None
    gc.freeze()  # nor what was read of a capture
    outcome = check_tapes(
        captured, job.options, progress, also=gallery.add if gallery else None,
        processes=job.processes or usual_processes(),
        meanwhile=meanwhile,
    )  # fmt: skip
    if watched is not None:
        outcome = with_functions(outcome, watched, job.options, progress)
    return replace(outcome, pictures=gallery.pictures()) if gallery else outcome

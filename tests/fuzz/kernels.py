"""Checks captures with changed kernels, each in a process of its own: `kernels SEED COUNT`.

Prints how each ended: done, engine, refused, or not compiled, which is a fault; or a signal's
number, or the name of an exception.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
import tempfile
from pathlib import Path

import engine
from adtool.captures.container import CaptureReader
from adtool.captures.run import Run
from adtool.checking import check_tapes
from adtool.exits import ToolError
from adtool.job import CheckOptions
from engine.archive import ArchiveError
from tests.fuzz.mutations import spoiled
from tests.fuzz.samples import PROGRAMS, members, read_capture, with_tapes

_SECONDS, _BYTES = 60, 8 << 30


def main(seed: int, count: int) -> None:
    """Finds captures whose changed functions are not refused at once, and checks them."""
    source = random.Random(seed)
    names = sorted(PROGRAMS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.adt"
        while count > 0:
            name = source.choice(names)
            data = json.loads(members(name)["tapes.json"])
            changed = json.loads(spoiled(json.dumps(data["functions"]), source))
            if changed == data["functions"]:
                continue
            text = json.dumps({**data, "functions": changed})
            try:
                read_capture(with_tapes(path, name, text))
            except (ToolError, ArchiveError):
                continue
            count -= 1
            print(_checked(path), flush=True)


def _checked(path: Path) -> str:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(_SECONDS)
        resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))
        os.write(write, _end(path).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as said:
        words = said.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        late = os.WTERMSIG(status) == signal.SIGALRM
        return "done" if late else f"signal {os.WTERMSIG(status)}"
    return words


def _end(path: Path) -> str:
    try:
        with CaptureReader(path) as reader, engine.watching(None, races=False):
            done = check_tapes(Run(reader).tapes(False, 1 << 26), CheckOptions())
            return "not compiled" if any(p.code == "E302" for p in done.problems) else done.kind
    except (ToolError, ArchiveError):
        return "refused"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))

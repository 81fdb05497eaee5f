"""Code that runs in the processes of a Ray cluster. It is sent to them as source."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


def runner(retries: int) -> Any:
    """The function of Ray that does a task, again on another worker if one is lost."""
    return _remote(_perform, num_cpus=1, max_retries=retries)


def board() -> Any:
    """An actor that keeps how far each task is."""
    return _remote(_Board, num_cpus=0).remote()


def _remote(what: Any, **options: Any) -> Any:
    ray: Any = import_module("ray")
    # Workers need not be able to import adtool before this has told them where it is.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    return ray.remote(**options)(what)


def _perform(
    place: tuple[str, str, str, int], text: str, number: int, board: Any
) -> tuple[str, tuple[bytes, bytes], tuple[int, int]]:
    """The result of a task as JSON, what was printed meanwhile, and how much of that is left out.

    place: where adtool lies, the folder to be in, threads of launches, bytes to keep.
    """
    import os
    import tempfile
    import time

    root, folder, threads, kept = place
    if root not in sys.path:
        sys.path.insert(0, root)
    os.chdir(folder)
    os.environ["ENGINE_NUM_THREADS"] = threads
    from adtool import codec, tasks
    from adtool.executors.base import Desk, performed
    from adtool.status import Status

    last = 0.0

    def say(status: Status) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= 1.0:
            last = now
            board.write.remote(number, codec.dumps(status))

    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        desk = Desk(None if board is None else say, (out, err))
        result = codec.dumps(performed(tasks.read(text), desk))
        sizes = [os.fstat(file.fileno()).st_size for file in (out, err)]
        for file in (out, err):
            file.seek(0)
        printed = (out.read(kept), err.read(kept))
    return result, printed, (max(0, sizes[0] - kept), max(0, sizes[1] - kept))


class _Board:
    """The last word on each task."""

    def __init__(self) -> None:
        self._said: dict[int, str] = {}

    def write(self, number: int, text: str) -> None:
        """Keeps it."""
        self._said[number] = text

    def read(self) -> dict[int, str]:
        """All of them."""
        return self._said

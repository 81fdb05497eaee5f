"""One shell for a whole document, so that `cd`, `export` and an activated environment stay."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

_END = "-- end of the command, exit code"


class ShellSession:
    """`sh`, which gets commands one by one; with `with`, it is ended at the end."""

    _begun: ClassVar[list[int]] = []

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self._shell = subprocess.Popen(
            ["/bin/sh"], cwd=folder, env=dict(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        self._begun.append(self._shell.pid)
        self._code = 0

    @classmethod
    def end_all(cls) -> None:
        """Ends all sessions, of other threads too, with what runs in them."""
        while cls._begun:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(cls._begun.pop(), signal.SIGKILL)

    def __enter__(self) -> ShellSession:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shell.pid in self._begun:
            self._begun.remove(self._shell.pid)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.communicate()

    def run(self, command: str, seconds: float) -> tuple[str, int]:
        """What a command prints (both streams, in order), and its exit code.

        `$?` is what the command before left. Raises TimeoutError after so many seconds, and
        RuntimeError where the shell itself ends.
        """
        assert self._shell.stdin is not None and self._shell.stdout is not None
        text = f"(exit {self._code})\n{{ {command}\n}} </dev/null\nprintf '\\n{_END} %d\\n' $?\n"
        self._shell.stdin.write(text.encode())
        self._shell.stdin.flush()
        until = time.monotonic() + seconds
        printed = b""
        with selectors.DefaultSelector() as ready:
            ready.register(self._shell.stdout, selectors.EVENT_READ)
            while True:
                if not ready.select(max(0.0, until - time.monotonic())):
                    raise TimeoutError(f"after {seconds:g} s `{command}` had not ended")
                part = os.read(self._shell.stdout.fileno(), 65536)
                printed += part
                said, end, code = printed.decode(errors="replace").rpartition(f"\n{_END} ")
                if end and code.endswith("\n"):
                    self._code = int(code)
                    return said, self._code
                if not part:
                    raise RuntimeError(f"the shell ended in `{command}`: {said or code}")

"""Tasks for executors, one file a kind, found by name.

A file defines one frozen dataclass that is a `Task` (`adtool.executors.base`), named as the file in
CamelCase. A task travels as JSON with its kind beside it.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from adtool import codec
from adtool.executors.base import Task

_KIND = re.compile(r"[a-z][a-z0-9_]*")


def written(task: Task) -> str:
    """The task as JSON."""
    return codec.dumps({"kind": task.kind, "task": task})


def read(text: str) -> Task:
    """The task that `written` wrote.

    Raises:
        CodecError: it is no task, or of a kind that is not known.
    """
    data: Any = codec.parse(text)
    kind = data.get("kind") if isinstance(data, dict) else None
    if not isinstance(kind, str) or _KIND.fullmatch(kind) is None:
        raise codec.CodecError("no task")
    try:
        module = import_module(f"{__name__}.{kind}")
    except ModuleNotFoundError:
        raise codec.CodecError(f"no task is of the kind {kind!r}") from None
    name = "".join(word.capitalize() for word in kind.split("_"))
    task: Task = codec.decode(getattr(module, name), data.get("task"))
    return task

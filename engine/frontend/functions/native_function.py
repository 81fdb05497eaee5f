"""Native functions, as data: `@func_native(snippet, adj_snippet, replay_snippet)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.classes import dataclass
from engine.diagnostics import Diagnostic, EngineError
from engine.frontend.functions.user_function import UserFunc


@dataclass(frozen=True, slots=True)
class Snippets:
    """The C++ of a native function, its adjoint and its replay; None where there is none."""

    forward: str
    adjoint: str | None = None
    replay: str | None = None


class NativeFunc(UserFunc):
    """A function whose body is C++."""

    is_plain = False

    def __init__(
        self, func: Callable[..., Any], snippets: Snippets, before: UserFunc | None = None
    ) -> None:
        self.snippets = snippets
        super().__init__(func, before)

    def __call__(self, *args: Any, **named: Any) -> Any:
        raise EngineError(
            Diagnostic(
                "E106",
                f"native function `{self.name}` was called outside a kernel",
                help="call it in a function decorated with @kernel or @func",
            )
        )

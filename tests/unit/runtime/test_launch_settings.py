"""Settings that launches without Python look at: where they changed, and then at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import engine as wp
from engine.accel import launcher, slots
from engine.accelerator import Accelerator
from engine.compile.cpu import schedule
from tests.unit.runtime.launching import NATIVE, made, scale, total, way
from tests.unit.runtime.test_whole_launches import iteration

pytestmark = [
    pytest.mark.skipif(NATIVE is None, reason="the launcher cannot be made here"),
    pytest.mark.host("native launches"),
]

SETTINGS = {
    "print_launches": True, "verify_fp": True, "device": "no device", "enable_backward": False,
    "verify_autograd_array_access": True, "overwrites": "present", "tape_snapshots": "eager",
    "stack_limit_bytes": None, "journal_limit_bytes": None,
}  # fmt: skip


@pytest.fixture(params=[True, False], ids=["versions", "none"])
def versions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[bool]:
    """Whether dictionaries say that they changed, as they do not in later versions of Python."""
    if not request.param:
        monkeypatch.setattr(slots, "version_place", lambda: 0)
    elif not slots.version_place():
        pytest.skip("dictionaries have no versions here")
    remake()
    yield request.param
    monkeypatch.undo()
    remake()


def remake() -> None:
    """Tells the library once more what it is told."""
    launcher.Maker(Accelerator()).make()


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_are_seen_where_they_change(
    name: str, versions: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, however they are set; and that they are as they were."""
    monkeypatch.setattr(schedule, "LEAST", 400_000)
    x, y, own = made(4), made(4), vars(wp.config)
    kept = own[name]

    def by_name(value: object) -> None:
        setattr(wp.config, name, value)

    def by_key(value: object) -> None:
        own[name] = value

    with way(monkeypatch, "native"):
        for kernel in (scale, total):  # other tests may have begun to count their launches
            kernel.forget()
        functions = launcher.maker.functions
        assert functions is not None

        def launch() -> Any:
            with wp.Tape():
                return functions.try_run(scale, 4, [x], [y, 2.0], None, None, True)

        for _ in range(5):
            iteration(x, y)
        for put in (by_name, by_key, by_name):
            assert launch() is True
            try:
                put(object() if SETTINGS[name] is None else SETTINGS[name])
                assert launch() is None
            finally:
                put(kept)
            assert launch() is True
        monkeypatch.setattr(schedule, "LEAST", 0)
        assert launch() is None
        monkeypatch.setattr(schedule, "LEAST", 400_000)
        assert launch() is True

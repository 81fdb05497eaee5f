"""`--native`: all launches that can go without Python do, from the second on.

Users' programs come to that after many launches, which hardly any test has: see
`engine.accel.launcher`. Messages, errors, gradients and what tapes remember are the same.
"""

from __future__ import annotations


def install() -> None:
    """Makes the native functions at once, and has them run what they can."""

    import engine as wp
    from engine.accel import launcher

    wp.Tape, wp.launch  # noqa: B018  # say what they know
    wp.config.native_after = 0
    launcher.maker.asked = True
    launcher.maker.make()
    assert launcher.maker.functions is not None

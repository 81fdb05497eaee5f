"""Words of rules for kernels that another package ran, whose adjoint is that package's."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.autograd import LaunchResult, Peer, TapeResult
    from engine.diagnostics import Span

_SHOWN = 3  # reasons that are named


def wrong_peer(launch: LaunchResult) -> Peer | None:
    """The package whose adjoint of a launch is wrong, where the kernel is not to blame."""
    return launch.peer if launch.peer is not None and launch.peer.wrong else None


def peer_of(tape: TapeResult) -> Peer | None:
    """The package that ran a tape, where that is not the engine."""
    return next((x.peer for x in tape.launches if x.peer is not None), None)


def place_of(launch: LaunchResult, peer: Peer) -> Span:
    """The operation that is the likeliest reason, else the kernel."""
    return next((r.span for r in peer.reasons if r.span is not None), launch.span)


def way_out(peer: Peer) -> str:
    """What to do about it."""
    return (
        f"rewrite it, or run the program with `--alias {peer.name.lower()}`, on the engine, whose "
        "adjoint of it is correct"
    )


def told(peer: Peer) -> str:
    """Whose fault it is, why, and what to do."""
    fault = f"{peer.name}'s own adjoint of this kernel is wrong, and not the kernel"
    if not peer.reasons:
        return f"{fault}; {way_out(peer)}"
    likely = "probably because " if len(peer.reasons) > 1 else ""
    return f"{fault}: {likely}{peer.reasons[0].text}; {way_out(peer)}"


def others(peer: Peer) -> tuple[str, ...]:
    """Notes of further reasons that may be."""
    return tuple(f"another possible cause: {r.text} ({r.span})" for r in peer.reasons[1:_SHOWN])

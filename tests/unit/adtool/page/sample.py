"""Pages of made-up runs: with few launches or many, and with names that attack the page."""

from __future__ import annotations

import math

from adtool.matrices import LaunchPictures, MatrixPicture
from adtool.page.data import Missing, PageData, PageRun
from adtool.report import EndToEnd, Failure, Finding, Fix, Launch, Pair, Problem, Report, Worst
from adtool.traces import Traces
from engine.autograd import (
    Flow,
    ListedArray,
    ListedKernel,
    ListedOperation,
    MemoryUse,
    OperationTrace,
    TapeListing,
    TapeTrace,
)

HOSTILE = (
    "</script><script>window.broken = 1</script>",
    "<img src=x onerror=window.broken=1>",
    '"><svg onload=window.broken=1>',
    "' onmouseover='window.broken=1",
    "`<b>`${window.broken=1}{{ 7 * 7 }}{% raw %}",
    "</style><style>*{display:none}</style>",
    "<!-- <script> ]]> &lt;i&gt; &#60;u&#62;",
    "a\u202eb\u2066c\u200fd\x1b[31m\x00e",
    "javascript:window.broken=1//" + "n" * 3000,
)


def run(
    launches: int = 6, *, hostile: bool = False, traces: bool = True, fails: bool = True,
    words: tuple[str, ...] = (),
) -> PageRun:  # fmt: skip
    """A run of one tape. hostile: every text of the user's is one of HOSTILE."""
    bad = HOSTILE if hostile else ()

    def text(usual: str, k: int = 0) -> str:
        return bad[k % len(bad)] if bad else usual

    def pair(k: int) -> Pair:
        verdict = "fail" if fails and k % 5 == 3 else "pass"
        worst = Worst(0, k, 1.0 + k, 1.25 + k, text("y[0]", k), text(f"x[{k}]", k + 1),
                      math.nan if k == 1 else 1e-7 * k)  # fmt: skip
        return Pair(
            text(f"in{k % 3}", k), text("out", k + 1), verdict, 64, 1e-9 * (k + 1),
            math.nan if k == 1 else 1e-7 * k, worst, 3, text("", k) if bad else "",
        )  # type: ignore[arg-type]  # fmt: skip

    made = tuple(
        Launch(0, k, text(f"kernel{k % 4}", k), text("script.py", k + 2), 12, (64, 2),
               (pair(k),) if k != 4 else (), text("script.py", k + 3), 30 + k % 7,
               text("no array requires a gradient", 4) if k == 4 else "")
        for k in range(launches)
    )  # fmt: skip
    findings = tuple(
        Finding(
            f"G00{k + 1}", text("wrong-gradient", k), severity, text(f"message {k} of `x`", k + 1),
            text("mend it", k + 2), text("kernel0", k + 3), 0, k, text("script.py", k + 4), 12, 5,
            12, 9, notes=(text("a note", k + 5),), source=(text("    y[i] = x[i]", k + 6),),
            fingerprint="0123456789abcdef", arrays=(text("x", k),),
            fix=Fix(text("add it", k + 7), True, ()),
        )
        for k, severity in enumerate(("error", "warning", "note"))
    )  # type: ignore[arg-type]  # fmt: skip
    report = Report(
        1, "adtool 0", text("script.py"), "cpu", not fails, int(fails), made,
        (EndToEnd(0, "skipped", None, text("too little memory", 1)),), findings if fails else (),
        tapes=1, seconds=1.5, notes=(text("a pattern fits nothing", 2),),
    )  # fmt: skip
    cells = tuple(float(v) for v in range(-6, 6))
    picture = MatrixPicture(text("in0", 1), text("out", 2), "fail", (30, 40), 12, 3, 4, cells,
                            (*cells[:-1], math.nan))  # fmt: skip
    return PageRun(
        text("script.py", 1), report, Traces((trace(launches, text),), 1) if traces else None,
        (LaunchPictures(0, 3, text("kernel3", 3), (picture,), text("too many", 4)),),
        missing=(Missing("Something", text("why not", 5)),),
    )  # fmt: skip


def trace(launches: int, text) -> TapeTrace:  # type: ignore[no-untyped-def]
    """A chain of launches, each of which reads what the one before it wrote."""
    kernels = tuple(
        ListedKernel("launch", text(f"kernel{k}", k), text("script.py", k), 12,
                     (text("x", k + 1), text("y", k + 2)), (0,), (1,))
        for k in range(4)
    )  # fmt: skip
    arrays = tuple(
        ListedArray(text(f"state{k}", k), "", (64,), "float32", 256, True)
        for k in range(min(launches, 8) + 1)
    )
    many = len(arrays)
    operations = tuple(
        ListedOperation(k, k, k % 4, (64,), (k % many, (k + 1) % many), 0) for k in range(launches)
    )
    listing = TapeListing(
        arrays, kernels, operations, ((text("script.py", 5), 40),), (), (), launches
    )
    traced = tuple(
        OperationTrace(1e-4, 2e-4, Flow((None, 1.0 + k), (0.5, None), (0.5, None)))
        for k in range(launches)
    )
    return TapeTrace(0, listing, traced, True, MemoryUse(1024, 0, 64))


def page(*runs: PageRun, source: str = "a test") -> PageData:
    """A page of runs."""
    return PageData(runs, source, "adtool 0", (("Python", "3"), ("Device", "cpu")))


def failed_run() -> PageRun:
    """A run whose script raised, with a traceback that attacks."""
    problem = Problem("E101", HOSTILE[1], HOSTILE[0], file="script.py", line=3, column=2)
    failure = Failure("raised", HOSTILE[0], HOSTILE[2], HOSTILE[1], (problem,))
    report = Report(1, "adtool 0", "script.py", "cpu", False, 2, (), (), (), failure)
    return PageRun("script.py", report)

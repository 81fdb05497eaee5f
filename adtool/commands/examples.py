"""Three command lines for each command, which its help shows first."""

from __future__ import annotations

# By the command's name: lines of at most 56 characters, and what they do.
EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "adtool": (
        ("adtool check train.py", "Check the gradients of all that a script records on tapes."),
        ("adtool explain G001", "What a finding means, and what to do about it."),
        ("adtool doctor", "What this machine brings, and what is to be installed."),
    ),
    "check": (
        ("adtool check train.py --steps 3", "Run a script with its own arguments, and check it."),
        ("adtool check --out sarif=found.sarif samples", "All scripts of a folder; a report, too."),
        ("adtool check --diff train.py", "Show the changes that make findings go away."),
    ),
    "baseline": (
        ("adtool baseline write samples", "Keep how accurate a folder's gradients are."),
        ("adtool baseline compare samples", "Tell what got worse since then."),
        ("adtool baseline compare --adopt samples", "Add to the file what is new."),
    ),
    "capture": (
        ("adtool capture train.py --steps 3", "Write train.adt, which `adtool check` takes."),
        ("adtool capture --out run.adt train.py", "Write it to another file."),
        ("adtool capture --kernel 'force*' train.py", "Keep only what these kernels read."),
    ),
    "reduce": (
        ("adtool reduce run.adt", "Write run.min.adt, which still shows the worst finding."),
        ("adtool reduce --code G001 run.adt", "Keep the first finding of this code."),
        ("adtool reduce --out small.adt run.adt", "Write it to another file."),
    ),
    "jacobian": (
        ("adtool jacobian train.py", "The only kernel, or the one that fails; else a list."),
        ("adtool jacobian train.py --kernel force", "That of the first launch of a kernel."),
        ("adtool jacobian train.py --kernel force --out j.png", "Draw it, too."),
    ),
    "graph": (
        ("adtool graph train.py --out tape.svg", "Run a script, check it, and draw its tape."),
        ("adtool graph --out tape.svg", "Draw the tape of the last run in this folder."),
        ("adtool graph --failing --out path.svg", "Only what leads to the first failure."),
    ),
    "trace": (
        ("adtool trace train.py", "Every operation: its time, memory and gradient norm."),
        ("adtool trace train.py --sort backward --top 10", "The ten slowest of the backward pass."),
        ("adtool trace train.py --out norms.png", "Draw the norm of the gradient along the tape."),
    ),
    "report": (
        ("adtool report train.py --out page.html", "Run and check a script, and write the page."),
        ("adtool report --out page.html", "A page of the last run in this folder."),
        ("adtool report found.json --out page.html", "A page of a report in JSON."),
    ),
    "show": (
        ("adtool show train.py force", "The typed code of a kernel."),
        ("adtool show train.py force --stage adjoint", "Its backward pass."),
        ("adtool show train.py force --stage cuda > k.cu", "Its CUDA text, which nvcc takes."),
    ),
    "explain": (
        ("adtool explain G001", "A finding of `adtool check`."),
        ("adtool explain E402", "An error of the engine."),
        ("adtool explain", "All codes."),
    ),
    "doctor": (
        ("adtool doctor", "Say what is there, and what to install."),
        ("adtool doctor --format json", "The same for programs."),
        ("adtool doctor --no-color", "The same without colour."),
    ),
    "selftest": (
        ("adtool selftest", "Spoil the gradients of all kernels, and see them caught."),
        ("adtool selftest --quick", "Only those of a part of them."),
        ("adtool selftest --seed 3", "The same with other random directions."),
    ),
    "schema": (
        ("adtool schema config", "The schema of [tool.adtool] in pyproject.toml."),
        ("adtool schema report", "The schema of what `--format json` prints."),
        ("adtool schema report > report.schema.json", "Keep it in a file."),
    ),
}  # fmt: skip

"""Three command lines for each command, which its help shows first."""

from __future__ import annotations

# By the command's name: lines of at most 56 characters, and what they do.
EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "adtool": (
        ("adtool check train.py", "Check the gradients on the tapes of a script."),
        ("adtool explain G001", "Explain a finding, and what to do about it."),
        ("adtool doctor", "Show what this machine has, and what to install."),
    ),
    "check": (
        ("adtool check train.py --steps 3", "Run a script with its own arguments, and check it."),
        ("adtool check --out sarif=found.sarif samples", "Check a folder, and write a report."),
        ("adtool check --diff train.py", "Show changes that remove findings."),
    ),
    "baseline": (
        ("adtool baseline write samples", "Store the accuracy of the gradients of a folder."),
        ("adtool baseline compare samples", "Show which gradients are less accurate now."),
        ("adtool baseline compare --adopt samples", "Add new entries to the file."),
    ),
    "capture": (
        ("adtool capture train.py --steps 3", "Write train.adt, which `adtool check` takes."),
        ("adtool capture --out run.adt train.py", "Write it to another file."),
        ("adtool capture --kernel 'force*' train.py", "Store only arrays that they read."),
    ),
    "reduce": (
        ("adtool reduce run.adt", "Write run.min.adt, which still shows the worst finding."),
        ("adtool reduce --code G001 run.adt", "Keep the first finding of this code."),
        ("adtool reduce --out small.adt run.adt", "Write it to another file."),
    ),
    "jacobian": (
        ("adtool jacobian train.py", "Show the only, or the failing, kernel."),
        ("adtool jacobian train.py --kernel force", "Show the first launch of a kernel."),
        ("adtool jacobian train.py --kernel force --out j.png", "Also draw it."),
    ),
    "graph": (
        ("adtool graph train.py --out tape.svg", "Run a script, check it, and draw its tape."),
        ("adtool graph --out tape.svg", "Draw the tape of the last run in this folder."),
        ("adtool graph --failing --out path.svg", "Draw only the path to the first problem."),
    ),
    "trace": (
        ("adtool trace train.py", "List every operation: time, memory and gradient norm."),
        ("adtool trace train.py --sort backward --top 10", "List the ten slowest operations."),
        ("adtool trace train.py --out norms.png", "Draw the norm of the gradient along the tape."),
    ),
    "report": (
        ("adtool report train.py --out page.html", "Run and check a script, and write a page."),
        ("adtool report --out page.html", "Write a page of the last run in this folder."),
        ("adtool report found.json --out page.html", "Write a page of a JSON report."),
    ),
    "show": (
        ("adtool show train.py force", "Show the typed code of a kernel."),
        ("adtool show train.py force --stage adjoint", "Show its backward pass."),
        ("adtool show train.py force --stage cuda > k.cu", "Write its CUDA code for nvcc."),
    ),
    "explain": (
        ("adtool explain G001", "Explain a finding of `adtool check`."),
        ("adtool explain E402", "Explain an error of the engine."),
        ("adtool explain", "All codes."),
    ),
    "doctor": (
        ("adtool doctor", "Show what is installed, and what to install."),
        ("adtool doctor --format json", "The same for programs."),
        ("adtool doctor --no-color", "The same without colour."),
    ),
    "selftest": (
        ("adtool selftest", "Plant wrong gradients, and count the caught ones."),
        ("adtool selftest --quick", "Use only some of the kernels."),
        ("adtool selftest --seed 3", "Use other random directions."),
    ),
    "schema": (
        ("adtool schema config", "Print the schema of [tool.adtool] in pyproject.toml."),
        ("adtool schema report", "Print the schema of the report of `--format json`."),
        ("adtool schema report > report.schema.json", "Write it to a file."),
    ),
}  # fmt: skip

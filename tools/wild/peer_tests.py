"""Lists Warp's own tests that fail on the engine, with reasons, from the logs of their runs."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

# Why a test fails, in the order of the page.
REASONS = {
    "words": "It compares the text of an error or a warning; the engine has other texts.",
    "private": "It uses private modules, attributes or generated code of Warp.",
    "allowed": "It expects an error for code that the engine accepts.",
    "identity": "It expects one object for kernels of equal contents; here there are several.",
    "gradient": "It expects a gradient, or a verdict on one, that float64 shows to be wrong.",
    "missing": "It needs a missing feature (E112, E104): tiles, addresses, views by reference, "
    "compiler flags, DLPack of bfloat16, grids of more than 2^31 threads.",
    "refused": "It expects the engine to accept: a Python number outside of an unsigned type, "
    "matrices without rows, gradients of integers, a stub for a kernel of another name, or "
    "`requires_grad` set between a launch and the backward pass (E401).",
    "other": "Its result differs in another way: rounding of float16 and float32 beyond its bound, "
    "the gradient of comparisons with NaN, strides and addresses of empty arrays, names of cache "
    "folders.",
    "unknown": "Not investigated.",
}  # fmt: skip

# Patterns of "file test: last line of the error", the first that is found decides.
RULES = (
    ("gradient", r"test_(retain_grad|retain_grad_slice_view_store|tape_copy_adjoint_consumption|"
     r"tape_copy_adjoint_out_of_scope|gradcheck_restore_inputs|gradcheck_tape_skips\w*|binary_ops_float\d+|"
     r"mat_slicing_assign_backward)_cpu:"),
    ("words", r"does not match \"|test_array_inner_error_shapes|test_options_backward_|"
     r"test_overwrite |restore_inputs_preserves|unsupported_dtypes_|with_wrong_argument_types|"
     r"error_unmatched_arguments"),
    ("identity", r"<kernel .*> is not <kernel|test_eager_generic_func_does_not_retain|"
     r"options_disambiguation"),
    ("private", r"type object '\w+' has no attribute|takes no arguments|must be an exception type|"
     r"argument of type|slice indices must|str expected, not|"
     r"'array' object has no attribute '_|'(Module|Parameters|IndexedArrayType|Kernel|Function)' "
     r"object has no attribute|"
     r"does not have the attribute|code_transformers|fallback_warning|gc_replacement|"
     r"composite_defaults|signature_introspection|test_static_constant_hash|leave the call out|"
     r"call `clear_kernel_cache|output_name_differentiation|ref_subscript_creates_type|"
     r"in_struct_numpy|deterministic_captured|noncontiguous_array_metadata"),
    ("missing", r"E112|address|not supported|cpu_llvm|array_from_ptr|dlpack_bf16|test_large_arrays|"
     r"ref_array_view_adjoint"),
    ("allowed", r"not raised"),
    ("refused", r"is outside|from 1 to 4096|have no gradient|requires_grad was set|"
     r"nonetype_return_annotation"),
    ("other", r"scalar_division_float16|test_mat44_cpu|test_multiple_return_values|"
     r"atomic_minmax_adjoint|test_alloc_strides|interface_empty|cache_env_var"),
)  # fmt: skip

_ERROR = re.compile(r"^[A-Za-z_][\w.]*(Error|Exception|Warning)\b")


def measured(folder: Path) -> list[dict[str, Any]]:
    """What a folder says: of each file of tests FILE.log, what `unittest` printed.

    A test counts once, whatever its parts; a file of which none ran is `silent`.
    """
    out = []
    for log in sorted(folder.glob("*.log")):
        text = log.read_text(encoding="utf-8", errors="replace")
        row: dict[str, Any] = {"file": log.stem, "passed": 0, "failed": 0, "skipped": 0, "why": {}}
        ran = re.findall(r"^Ran (\d+) tests? in", text, re.MULTILINE)
        if ran:
            found = dict(reversed(failures(text)))  # of a test with parts, what failed first
            skipped = re.findall(r"^(?:OK|FAILED) \(.*?skipped=(\d+)", text, re.MULTILINE)
            row["failed"], row["skipped"] = len(found), sum(map(int, skipped[-1:]))
            row["passed"] = int(ran[-1]) - row["failed"] - row["skipped"]
            for name in sorted(found):
                row["why"].setdefault(reason(log.stem, name, found[name]), []).append(name)
        else:
            row["silent"] = True
        out.append(row)
    return out


def failures(text: str) -> list[tuple[str, str]]:
    """The tests that failed, in order, with what their errors say in one line."""
    found = []
    for block in text.split("\n" + "=" * 70 + "\n")[1:]:
        head = re.match(r"(?:FAIL|ERROR): (\S+)", block)
        if head is None:
            continue
        lines = [x for x in block.split("\n" + "-" * 70 + "\nRan ")[0].splitlines() if x.strip()]
        errors = [x for x in lines if _ERROR.match(x)]
        found.append((head[1], " ".join((*errors[-1:], lines[-1]))))
    return found


def reason(file: str, test: str, said: str) -> str:
    """Why a test failed: a key of REASONS."""
    text = f"{file} {test}: {said}"
    return next((key for key, pattern in RULES if re.search(pattern, text)), "unknown")


def page(data: dict[str, Any]) -> str:
    """The page. data: `versions`, and `files` as `measured` gives them."""
    files = data["files"]
    total = Counter({k: sum(f[k] for f in files) for k in ("passed", "failed", "skipped")})
    silent = [f["file"] for f in files if f.get("silent")]
    by: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for f in files:
        for key, tests in f["why"].items():
            by[key][f["file"]] = tests
    counts = {k: sum(map(len, by[k].values())) for k in REASONS if k in by}
    run = total["passed"] + total["failed"]
    out = [
        "# Warp's own tests", "",
        "This page lists the results of tests from the suite of Warp, run on the CPU with the "
        "engine under the name of Warp. They are about tapes, gradients, the language, types, "
        "arrays and helpers. The suite itself imports private modules of Warp; placeholders "
        "replace these, and a test that uses one fails. `tools/make_peer_tests.py` makes this "
        "page.", "",
        "Run with " + ", ".join(f"{n} {v}" for n, v in data["versions"].items()) + ".", "",
        f"**{total['passed']:,} of {run:,} pass**; the suite skipped {total['skipped']}. "
        f"Without tests that use private modules, {total['passed']:,} of "
        f"{run - counts.get('private', 0):,} pass.", "",
        "## Why the others fail", "",
        "| tests | why |", "|---|---|",
        *(f"| {n} | {REASONS[k]} |" for k, n in counts.items()), "",
        f"{len(silent)} files load none of their tests, because they use private modules at "
        "import: " + ", ".join(f"`{name}`" for name in silent) + ".", "",
        "## By file", "", "| file | passed | failed | skipped |", "|---|---|---|---|",
        *(f"| `{f['file']}` | {f['passed']} | {f['failed']} | {f['skipped']} |"
          for f in files if not f.get("silent") and f["passed"] + f["failed"]),
        "", "## The tests that fail", "",
    ]  # fmt: skip
    for key in counts:
        out += [f"### {REASONS[key]}", ""]
        for file, tests in by[key].items():
            out.append(f"- `{file}`: " + ", ".join(f"`{t}`" for t in tests))
        out.append("")
    return "\n".join(out).rstrip() + "\n"

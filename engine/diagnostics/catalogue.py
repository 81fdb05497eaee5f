"""Every error code that `engine` can give, with its one-line meaning."""

from __future__ import annotations

CODES: dict[str, str] = {
    # Language (raised before anything is compiled)
    "E101": "unsupported syntax",
    "E102": "unknown name",
    "E103": "missing or unsupported annotation",
    "E104": "no overload for these types",
    "E105": "type of a variable changes",
    "E106": "unsupported call",
    "E107": "unsupported value captured from Python",
    "E108": "recursion",
    "E109": "wrong number of values",
    "E110": "not differentiable as written",
    "E111": "source text not available",
    "E112": "feature of Warp that is not supported",
    # Launch and arrays
    "E201": "wrong number of arguments",
    "E202": "argument has the wrong type",
    "E203": "argument has the wrong number of dimensions",
    "E204": "argument is on another device",
    "E205": "bad launch dimensions",
    "E206": "bad array data, shape or dtype",
    "E207": "shapes do not match",
    "E208": "unknown device",
    "E209": "out of memory",
    "E210": "a test inside a kernel failed",
    "E211": "access outside of an array, view, vector or matrix",
    "E212": "geometry that a kernel queries is gone",
    "E213": "bad use of a captured graph, a stream or an event",
    # Compilation
    "E301": "no C++ compiler found",
    "E302": "the C++ compiler failed",
    "E303": "the kernel cache cannot be used",
    "E304": "the C++ compiler refuses a native snippet",
    "E305": "the derivative of a kernel is too large",
    # Tape and checks
    "E401": "bad use of a tape",
    "E402": "bad seed for a backward pass",
    "E403": "gradient check failed",
    "E404": "nothing was checked",
    "E405": "unknown kernel, input or output in a mask",
    "E406": "bad tangent for a forward derivative",
    "E407": "threads overwrite each other's values",
    "E408": "the tape overwrote values that a gradient needs",
}

"""The table of Python statements and literals that the kernel language has."""

from __future__ import annotations

from engine.classes import dataclass

INTRO = (
    "Statements mean the same as in Python, and derivatives are those of the statements that ran. "
    "The engine refuses all other statements at their line (E101), and says what to write instead."
)


@dataclass(frozen=True, slots=True)
class Row:
    """example: statements of a kernel with `x` and `y`, arrays of float64, and `n`, an int32.

    functions: what these call.
    """

    name: str
    example: str
    meaning: str
    functions: str = ""


ROWS: tuple[Row, ...] = (
    Row(
        "branches",
        "y[0] = x[0] if n > 2 else x[1]",
        "`if`, `elif`, `else`, `a if c else b`, `and`, `or`, `not` evaluate only the operands that "
        "Python evaluates.",
    ),
    Row(
        "loops",
        "for i in range(n):\n    y[i] = x[i]",
        "`for` over `range` and `reversed(range(...))` with any bounds, and `while`, with `break`, "
        "`continue` and `return`.",
    ),
    Row(
        "`else` of a loop",
        "for i in range(n):\n    if x[i] > 2.0:\n        break\nelse:\n    y[0] = 1.0",
        "The `else` of `for` and `while` runs if no `break` ended the loop.",
    ),
    Row(
        "loops over items",
        "for k, c in enumerate((0.5, 1.5)):\n    y[k] = c * x[k]",
        "A loop may go over a tuple, vector, matrix (by rows) or local array, or over `reversed`, "
        "`enumerate` and `zip` of these, with one name or several. The engine repeats the body "
        "for each item, so items may have different types.",
    ),
    Row(
        "membership",
        "if n in (1, 3):\n    y[0] = x[0]",
        "`x in items` and `x not in items` compare `x` by value with each item of a tuple.",
    ),
    Row(
        "components",
        "for j in range(n):\n    y[j] = x[j] * (0.5, 0.7, 2.0)[j - 1]",
        "Vectors, matrices, local arrays and tuples of numbers have components. The index may be "
        "computed at run time; a negative one counts from the end. An index outside of the value "
        "is an error of the program, and `adtool check` reports it (G008). A plain run takes the "
        "nearest component, and neither reads nor writes memory beside the value.",
    ),
    Row(
        "assignment",
        "a, *rest = (x[0], x[1], 2.0)\nb = c = a",
        "You can assign to names, components, elements, fields and slices, to several targets at "
        "once, and with `:=`. A name has one type in the whole function.",
    ),
    Row(
        "augmented assignment",
        "y[0] += x[0]\ny[1] *= 2.0",
        "The kernel reads the target, computes the right side, and writes the target, in this "
        "order, also if the right side calls a function that writes the target. For an element "
        "of an array, `+=` and `-=` (for integers also `&=`, `|=`, `^=`) are one atomic update, so "
        "threads can share the element. If the right side writes the same array, the update is "
        "not atomic, and neither is `*=`.",
    ),
    Row(
        "literals",
        "for j in range(n):\n    y[j] = x[0] * (0.5, 0.7)[j] + (0.1 if n > 2 else 0.3)",
        "A constant number has no type until an operation needs one, and is exact in that type: "
        "in float64, `0.1` is the double. This also holds for results of operators and builtins on "
        "constants (in double precision), for items of constant tuples with an index computed at "
        "run time, for choices between constants, and for names of constants. If no operation "
        "needs a type, a number with a point is float32, and one without is int32.",
    ),
    Row(
        "literals and functions",
        "y[0] = scaled(0.7, x[0]) * weight(n > 2)",
        "A number with a point also stays exact as the result of a function without a result "
        "annotation (`return 0.7 if c else 0.1`, or one of several `return`), and as the argument "
        "of a parameter that takes any type: the function then starts as if it assigned the number "
        "to that name. An annotation sets the type: a parameter or result `float` is float32 from "
        "then on. The same holds for functions with a handwritten gradient or replay, for native "
        "functions, and for items of tuples and structs.",
        "@wp.func\ndef weight(c: bool):\n    if c:\n        return 0.7\n    return 0.1\n\n\n"
        "@wp.func\ndef scaled(a, x):\n    return a * x\n\n\n",
    ),
    Row(
        "names that a literal starts",
        "s = 0.0\nfor j in range(n):\n    s += x[j]\ny[0] = s",
        "If the first value of a variable is a number with a point, the variable takes the float "
        "type that later operations need, here float64. A cast (`wp.float64(s)`) counts too. "
        "Without such an operation it is float32. A number without a point makes an int32. A "
        "function that returns such a variable returns a float32, unless its result annotation "
        "says otherwise.",
    ),
)

# Statements that the engine refuses, each with what to write instead.
REFUSED: tuple[Row, ...] = (
    Row("no lists, dictionaries or sets", "a = [1, 2]", "tuples, vectors, local arrays"),
    Row("no comprehensions", "y[0] = sum(c for c in (1.0, 2.0))", "a loop"),
    Row("no `match`, `try`, `with`, `raise`", "with x:\n    y[0] = 1.0", "`if`"),
    Row("no iteration over arrays", "for v in x:\n    y[0] = v", "`for i in range(len(x))`"),
    Row("no `in` for arrays", "if 1.0 in x:\n    y[0] = 1.0", "a loop with `break` and `else`"),
)


def statements() -> list[str]:
    """The paragraphs about statements."""
    parts = ["## Statements and literals", INTRO]
    for row in ROWS:
        parts += [f"**{row.name[0].upper()}{row.name[1:]}.** {row.meaning}",
                  f"```python\n{row.functions}{row.example}\n```"]  # fmt: skip
    table = ["| not in the language | write |", "|---|---|"]
    table += [f"| {row.name} | {row.meaning} |" for row in REFUSED]
    return [*parts, "\n".join(table)]

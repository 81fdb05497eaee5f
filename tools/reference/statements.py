"""The table of what kernels are written with, beside builtins: Python's statements and literals."""

from __future__ import annotations

from engine.classes import dataclass

INTRO = (
    "What is written as in Python means what it means in Python, and derivatives are those of "
    "what ran. What the language has not is refused where it stands (E101), with what to write "
    "instead."
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
        "`if`, `elif`, `else`, `a if c else b`, `and`, `or`, `not`: what Python does not evaluate "
        "is not evaluated.",
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
        "`for ... else` and `while ... else`: runs where no `break` left the loop.",
    ),
    Row(
        "loops over items",
        "for k, c in enumerate((0.5, 1.5)):\n    y[k] = c * x[k]",
        "Over a tuple, vector, matrix (by rows) or local array, `reversed`, `enumerate` and `zip` "
        "of these, with one name or several. The body is written out for each item, so that "
        "items may have different types.",
    ),
    Row(
        "membership",
        "if n in (1, 3):\n    y[0] = x[0]",
        "`x in items` and `x not in items` for a tuple: compares by value with each item.",
    ),
    Row(
        "components",
        "for j in range(n):\n    y[j] = x[j] * (0.5, 0.7, 2.0)[j - 1]",
        "Of vectors, matrices, local arrays and tuples of numbers, by indices that may be known at "
        "run time only; a negative one counts from the end. One that is outside all the same is "
        "an error of the program: `adtool check` names it (G008); a plain run takes the nearest "
        "component, so that nothing beside the value is read or written.",
    ),
    Row(
        "assignment",
        "a, *rest = (x[0], x[1], 2.0)\nb = c = a",
        "To names, components, elements, fields and slices; of several values at once; `:=`. A "
        "name has one type in the whole function.",
    ),
    Row(
        "augmented assignment",
        "y[0] += x[0]\ny[1] *= 2.0",
        "The target is read, then the right side is computed, then the target is written, also "
        "where the right side calls a function that writes the target. Of an array's element, "
        "`+=` and `-=` (of integers `&=`, `|=`, `^=` too) are one atomic update, so that threads "
        "can share it; but not where the right side writes that same array: then each step is "
        "taken by itself, as for `*=`.",
    ),
    Row(
        "literals",
        "for j in range(n):\n    y[j] = x[0] * (0.5, 0.7)[j] + (0.1 if n > 2 else 0.3)",
        "A constant number has no type until one is asked of it, and is exact in that type: in "
        "float64 `0.1` is the double. This holds for what is computed of constants, by operators "
        "and builtins (in double precision), for items of constant tuples that an index chooses "
        "at run time, for choices between constants, and for names that stand for one. Where "
        "no type is asked, a number with a point is float32 and another one int32.",
    ),
    Row(
        "literals and functions",
        "y[0] = scaled(0.7, x[0]) * weight(n > 2)",
        "A number with a point is exact, too, as the result of a function whose result has no "
        "annotation (`return 0.7 if c else 0.1`, or one of several `return`), and as the argument "
        "for a parameter that takes any type: the function then begins as if it assigned the "
        "number to that name. What is annotated asks for its type: what a `float` gets or gives is "
        "float32 from then on. So it is with functions that have a gradient or replay of their "
        "own, with native ones, and with items of tuples and structs.",
        "@wp.func\ndef weight(c: bool):\n    if c:\n        return 0.7\n    return 0.1\n\n\n"
        "@wp.func\ndef scaled(a, x):\n    return a * x\n\n\n",
    ),
    Row(
        "names that a literal starts",
        "s = 0.0\nfor j in range(n):\n    s += x[j]\ny[0] = s",
        "A variable to which a number with a point was assigned first takes the type of floats "
        "that is asked of it further down, here float64, also by a cast (`wp.float64(s)`); "
        "without one it is float32. A whole number makes an int32. A function that returns such "
        "a variable gives a float32, unless the annotation of its result says otherwise.",
    ),
)

# Statements that are refused, each with the reason why.
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

"""The family of each builtin: the chapters of the language reference."""

from __future__ import annotations

from fnmatch import fnmatchcase

from engine.classes import dataclass


@dataclass(frozen=True, slots=True)
class Family:
    """A chapter. members: names of builtins, or patterns of names (`quat_*`)."""

    name: str
    title: str
    intro: str
    members: tuple[str, ...]


def _family(name: str, title: str, intro: str, members: str) -> Family:
    return Family(name, title, intro, tuple(members.split()))


FAMILIES: tuple[Family, ...] = (
    _family(
        "operators", "Arithmetic and logic",
        "Operators, and the functions with the same meaning. Operands must have the same type: the "
        "engine converts none, with two exceptions. A literal takes the type of the other operand, "
        "exactly. Comparisons compare two numbers by value; only an unsigned 64-bit integer and a "
        "signed one have no common type. `/` of integers truncates, also of literals: `1/2` is the "
        "integer 0 where the kernel needs an integer, and an error where it needs a float.",
        "add sub mul div div_approx mod floordiv neg pos unot",
    ),
    _family(
        "scalars", "Functions of numbers",
        "Elementary functions, rounding, choice and interpolation. Results have the type of the "
        "arguments. NaN and infinities follow IEEE 754.",
        "sin cos tan asin acos atan atan2 sinh cosh tanh exp log log2 log10 sqrt cbrt pow erf erfc "
        "erfinv erfcinv abs sign step nonzero copysign frac floor ceil trunc round rint min max "
        "clamp degrees radians lerp smoothstep isfinite isnan isinf",
    ),
    _family(
        "bits", "Bits",
        "Operations on the bits of integers, and on the bytes of a value.",
        "bit_* lshift rshift invert cast",
    ),
    _family(
        "vectors", "Vectors",
        "Products, lengths, norms and reductions of vectors. Components are `v[i]`, `v.x`, or a "
        "slice `v[1:3]`.",
        "vector dot cross length length_sq normalize norm_* smooth_normalize cw_mul cw_div argmin "
        "argmax",
    ),
    _family(
        "matrices", "Matrices",
        "Construction, products, inverses and decompositions of small matrices. Components are "
        "`m[i, j]`, rows `m[i]`.",
        "matrix matrix_from_* identity outer ddot transpose trace diag get_diag skew determinant "
        "inverse inverse_approx svd2 svd3 eig3 qr3",
    ),
    _family(
        "quaternions", "Quaternions",
        "Rotations as four numbers x, y, z, w. `a * b` rotates by b, and then by a.",
        "quaternion quat_*",
    ),
    _family(
        "transforms", "Transforms",
        "Rigid motions: a rotation `t.q` and then a translation `t.p`, seven numbers.",
        "transformation transform_*",
    ),
    _family(
        "spatial", "Spatial vectors",
        "Twists and wrenches: six numbers, the angular part first.",
        "spatial_* velocity_at_point",
    ),
    _family(
        "random_numbers", "Random numbers",
        "Reproducible sequences: the same seed gives the same numbers on every device. A state is "
        "a `uint32` variable of the kernel, which each draw advances.",
        "rand_init rand? poisson sample_*",
    ),
    _family(
        "noise", "Noise",
        "Smooth random fields, with exact derivatives by position.",
        "noise pnoise curlnoise",
    ),
    _family(
        "arrays", "Threads and arrays",
        "The index of the thread, and atomic updates of elements that many threads share. An "
        "update returns the previous value of the element. If the order of threads matters, the "
        "CPU runs them one after another.",
        "tid len lower_bound atomic_* block_dim tile untile tile_*",
    ),
    _family(
        "geometry", "Geometry",
        "Queries for neighbours of points, boxes and rays in a `HashGrid`, `Bvh` or `Mesh` of the "
        "host. Kernels take its number, `grid.id`, as a `uint64`. They loop over the results of a "
        "query by `for i in query:`, or by a variable that the next step sets. Derivatives treat "
        "the results as fixed: they are the derivatives of what the kernel computes from them, and "
        "of the place on the face that a query found, also by the points of the mesh.",
        "hash_grid_* bvh_* mesh_* closest_point_edge_edge intersect_tri_tri",
    ),
    _family(
        "choice", "Choice and messages",
        "Values chosen by a condition, and messages of kernels.",
        "where select print printf expect_*",
    ),
)  # fmt: skip


def family_of(name: str) -> Family:
    """The family of a builtin. Raises KeyError for a name that stands in none of them."""
    for family in FAMILIES:
        if any(fnmatchcase(name, pattern) for pattern in family.members):
            return family
    raise KeyError(f"builtin {name!r} belongs to no family: add it in engine/builtins/families.py")

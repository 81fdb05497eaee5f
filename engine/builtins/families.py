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
        "What operators mean, and the functions of the same meaning. Nothing converts by itself, "
        "except literals, which take the type that the other operand asks for, exactly, and two "
        "numbers that are compared: they are compared by value. Only an unsigned 64-bit integer "
        "and a signed one have no common type. Between integers `/` truncates, between literals "
        "too: `1/2` is the integer 0 where an integer is wanted, and refused where a float is.",
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
        "Integers as patterns of bits, and values as the bytes that they are stored in.",
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
        "Rotations as four numbers x, y, z, w. `a * b` turns by b, and then by a.",
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
        "The thread's place in the launch, and updates of elements that many threads share. An "
        "update gives the value before it. Where the order of threads matters, the "
        "CPU runs them one after the other.",
        "tid len lower_bound atomic_* block_dim tile untile tile_*",
    ),
    _family(
        "geometry", "Geometry",
        "Neighbours of points, boxes and rays, queried from a `HashGrid`, `Bvh` or `Mesh` that the "
        "host has made. Kernels take its number, `grid.id`, as a `uint64`, and go over what a "
        "query finds by `for i in query:`, or by a variable that the next step sets. What is found "
        "counts as fixed in derivatives: they are those of what the kernel does with it, and of "
        "the place on the face that was found, also by the points of the mesh.",
        "hash_grid_* bvh_* mesh_* closest_point_edge_edge intersect_tri_tri",
    ),
    _family(
        "choice", "Choice and messages",
        "Values chosen by a condition, and what kernels say while they run.",
        "where select print printf expect_*",
    ),
)  # fmt: skip


def family_of(name: str) -> Family:
    """The family of a builtin. Raises KeyError for a name that stands in none of them."""
    for family in FAMILIES:
        if any(fnmatchcase(name, pattern) for pattern in family.members):
            return family
    raise KeyError(f"builtin {name!r} belongs to no family: add it in engine/builtins/families.py")

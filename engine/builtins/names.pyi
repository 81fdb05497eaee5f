"""The builtins, for editors and type checkers.

Made by tools/make_reference.py: do not edit.
"""

from typing import Any

def abs(x: Any, /) -> Any:
    """abs(x): the magnitude. The derivative at 0 is 1.
    abs(x), on vectors: by component, the magnitude. The derivative at 0 is 1.

    abs(x: T) -> T
    abs(x: vec[N, T]) -> vec[N, T]
    """
    ...

def acos(x: Any, /) -> Any:
    """acos(x): angle in [0, pi] whose cosine is x; x is clamped to [-1, 1].

    acos(x: F) -> F
    """
    ...

def add(a: Any, b: Any, /) -> Any:
    """add(a, b): the sum of two numbers, vectors, matrices, quaternions or transforms of one type;
    integers wrap.

    add(a: T, b: T) -> T
    add(a: quat[F], b: quat[F]) -> quat[F]
    add(a: transform[F], b: transform[F]) -> transform[F]
    add(a: vec[N, T], b: vec[N, T]) -> vec[N, T]
    add(a: mat[N, M, T], b: mat[N, M, T]) -> mat[N, M, T]
    """
    ...

def argmax(v: Any, /) -> Any:
    """argmax(v): index of the first largest component; NaNs are skipped.

    argmax(v: vec[N, T]) -> uint32
    """
    ...

def argmin(v: Any, /) -> Any:
    """argmin(v): index of the first smallest component; NaNs are skipped.

    argmin(v: vec[N, T]) -> uint32
    """
    ...

def asin(x: Any, /) -> Any:
    """asin(x): angle in [-pi/2, pi/2] whose sine is x; x is clamped to [-1, 1].

    asin(x: F) -> F
    """
    ...

def atan(x: Any, /) -> Any:
    """atan(x): angle in [-pi/2, pi/2] whose tangent is x.

    atan(x: F) -> F
    """
    ...

def atan2(y: Any, x: Any, /) -> Any:
    """atan2(y, x): angle of the point (x, y) in [-pi, pi]; zero gradient at (0, 0).

    atan2(y: F, x: F) -> F
    """
    ...

def atomic_add(*args: Any, **named: Any) -> Any:
    """atomic_add(array, i..., value): adds to an element, returns the old value."""
    ...

def atomic_and(*args: Any, **named: Any) -> Any:
    """atomic_and(array, i..., value): clears the bits of an element that are not set in value,
    returns the old value."""
    ...

def atomic_cas(*args: Any, **named: Any) -> Any:
    """atomic_cas(array, i..., compare, value): stores value into an element that equals compare,
    returns the old value; vectors and matrices count by component."""
    ...

def atomic_exch(*args: Any, **named: Any) -> Any:
    """atomic_exch(array, i..., value): stores into an element, returns the old value."""
    ...

def atomic_max(*args: Any, **named: Any) -> Any:
    """atomic_max(array, i..., value): raises an element, returns the old value."""
    ...

def atomic_min(*args: Any, **named: Any) -> Any:
    """atomic_min(array, i..., value): lowers an element, returns the old value."""
    ...

def atomic_or(*args: Any, **named: Any) -> Any:
    """atomic_or(array, i..., value): sets bits of an element, returns the old value."""
    ...

def atomic_sub(*args: Any, **named: Any) -> Any:
    """atomic_sub(array, i..., value): subtracts from an element, returns the old value."""
    ...

def atomic_xor(*args: Any, **named: Any) -> Any:
    """atomic_xor(array, i..., value): flips bits of an element, returns the old value."""
    ...

def bit_and(a: Any, b: Any, /) -> Any:
    """bit_and(a, b): bits set in both integers.
    bit_and(a, b), on vectors and matrices: by component, bits set in both integers.

    bit_and(a: I, b: I) -> I
    bit_and(a: vec[N, I], b: vec[N, I]) -> vec[N, I]
    bit_and(a: mat[N, M, I], b: mat[N, M, I]) -> mat[N, M, I]
    """
    ...

def bit_count(x: Any, /) -> Any:
    """bit_count(x): how many bits of an integer are set; a negative one counts in two's
    complement, so that bit_count(-1) is the width of its type.

    bit_count(x: I) -> int32
    """
    ...

def bit_or(a: Any, b: Any, /) -> Any:
    """bit_or(a, b): bits set in at least one integer.
    bit_or(a, b), on vectors and matrices: by component, bits set in at least one integer.

    bit_or(a: I, b: I) -> I
    bit_or(a: vec[N, I], b: vec[N, I]) -> vec[N, I]
    bit_or(a: mat[N, M, I], b: mat[N, M, I]) -> mat[N, M, I]
    """
    ...

def bit_xor(a: Any, b: Any, /) -> Any:
    """bit_xor(a, b): bits set in only one integer.
    bit_xor(a, b), on vectors and matrices: by component, bits set in only one integer.

    bit_xor(a: I, b: I) -> I
    bit_xor(a: vec[N, I], b: vec[N, I]) -> vec[N, I]
    bit_xor(a: mat[N, M, I], b: mat[N, M, I]) -> mat[N, M, I]
    """
    ...

def block_dim(*args: Any, **named: Any) -> Any:
    """block_dim(): threads of a block, 1 on the CPU."""
    ...

def bvh_get_group_root(*args: Any, **named: Any) -> Any:
    """bvh_get_group_root(id, group): the node that has all items of a group, for queries; -1 if
    there is none.

    bvh_get_group_root(id: uint64, group: int32)
    """
    ...

def bvh_query_aabb(*args: Any, **named: Any) -> Any:
    """bvh_query_aabb(id, low, high, root=-1): goes over the items of a `Bvh` or, by
    `mesh_get_bvh`, of a mesh, whose boxes meet that from low to high. root: the node below
    which to look, from `bvh_get_group_root`. `for i in bvh_query_aabb(...)`.

    bvh_query_aabb(id: uint64, low: vec<3,float32>, high: vec<3,float32>, root: int32 = -1)
    """
    ...

def bvh_query_capsule(*args: Any, **named: Any) -> Any:
    """bvh_query_capsule(id, start, dir, radius, root=-1): goes over the items of a `Bvh` or, by
    `mesh_get_bvh`, of a mesh, whose boxes the ray meets when they are wider by radius on each
    side. root: the node below which to look, from `bvh_get_group_root`. `for i in
    bvh_query_capsule(...)`.

    bvh_query_capsule(id: uint64, start: vec<3,float32>, dir: vec<3,float32>, radius: float32, root: int32 = -1)
    """
    ...

def bvh_query_next(*args: Any, **named: Any) -> Any:
    """bvh_query_next(query, index, max_dist=inf): steps to the next item and sets index to its
    number; False if there is none. max_dist: how far to look along a ray, in lengths of its
    direction.

    bvh_query_next(query: BvhQuery, index: int32, max_dist: float32 = inf)
    """
    ...

def bvh_query_ray(*args: Any, **named: Any) -> Any:
    """bvh_query_ray(id, start, dir, root=-1): goes over the items of a `Bvh` or, by
    `mesh_get_bvh`, of a mesh, whose boxes the ray meets. root: the node below which to look,
    from `bvh_get_group_root`. `for i in bvh_query_ray(...)`.

    bvh_query_ray(id: uint64, start: vec<3,float32>, dir: vec<3,float32>, root: int32 = -1)
    """
    ...

def bvh_query_sphere(*args: Any, **named: Any) -> Any:
    """bvh_query_sphere(id, center, radius, root=-1): goes over the items of a `Bvh` or, by
    `mesh_get_bvh`, of a mesh, whose boxes meet the ball. root: the node below which to look,
    from `bvh_get_group_root`. `for i in bvh_query_sphere(...)`.

    bvh_query_sphere(id: uint64, center: vec<3,float32>, radius: float32, root: int32 = -1)
    """
    ...

def cast(*args: Any, **named: Any) -> Any:
    """cast(x, dtype): the bytes of x read as another type of the same size; no derivative. To
    convert a number, call the type: int(x)."""
    ...

def cbrt(x: Any, /) -> Any:
    """cbrt(x): cube root, also of negative numbers. The derivative at 0 is infinite.

    cbrt(x: F) -> F
    """
    ...

def ceil(x: Any, /) -> Any:
    """ceil(x): the smallest integer not below x, as a float.

    ceil(x: F) -> F
    """
    ...

def clamp(x: Any, low: Any, high: Any, /) -> Any:
    """clamp(x, low, high): min(max(low, x), high); low for NaN, high where low is above it.

    clamp(x: T, low: T, high: T) -> T
    """
    ...

def closest_point_edge_edge(p1: Any, q1: Any, p2: Any, q2: Any, epsilon: Any, /) -> Any:
    """closest_point_edge_edge(p1, q1, p2, q2, epsilon): the weights s and t of the nearest points
    p1 + s * (q1 - p1) and p2 + t * (q2 - p2) of two segments, and their distance, as a vec3. A
    segment whose squared length is not above epsilon counts as its first point.

    closest_point_edge_edge(p1: vec[3, F], q1: vec[3, F], p2: vec[3, F], q2: vec[3, F], epsilon: F) -> vec[3, F]
    """
    ...

def copysign(x: Any, y: Any, /) -> Any:
    """copysign(x, y): the magnitude of x with the sign of y.

    copysign(x: F, y: F) -> F
    """
    ...

def cos(x: Any, /) -> Any:
    """cos(x): cosine of an angle in radians.

    cos(x: F) -> F
    """
    ...

def cosh(x: Any, /) -> Any:
    """cosh(x): hyperbolic cosine.

    cosh(x: F) -> F
    """
    ...

def cross(a: Any, b: Any, /) -> Any:
    """cross(a, b): the vector product, in three dimensions.

    cross(a: vec[3, T], b: vec[3, T]) -> vec[3, T]
    """
    ...

def curlnoise(state: Any, p: Any, octaves: Any = ..., lacunarity: Any = ..., gain: Any = ..., /) -> Any:
    """curlnoise(state, p, octaves=1, lacunarity=2.0, gain=0.5): a smooth vector field without
    divergence: the curl of noise at a point p of 2 or 3 components, or of 3 and the time. It is
    a sum of octaves with the frequencies lacunarity**k and the weights gain**k.

    curlnoise(state: uint32, p: vec[2, F], octaves: int32 | uint32 = 1, lacunarity: F = 2.0, gain: F = 0.5) -> vec[2, F]
    curlnoise(state: uint32, p: vec[3, F], octaves: int32 | uint32 = 1, lacunarity: F = 2.0, gain: F = 0.5) -> vec[3, F]
    curlnoise(state: uint32, p: vec[4, F], octaves: int32 | uint32 = 1, lacunarity: F = 2.0, gain: F = 0.5) -> vec[3, F]
    """
    ...

def cw_div(a: Any, b: Any, /) -> Any:
    """cw_div(a, b): the quotient component by component.

    cw_div(a: vec[N, T], b: vec[N, T]) -> vec[N, T]
    cw_div(a: mat[N, M, T], b: mat[N, M, T]) -> mat[N, M, T]
    """
    ...

def cw_mul(a: Any, b: Any, /) -> Any:
    """cw_mul(a, b): the product component by component.

    cw_mul(a: vec[N, T], b: vec[N, T]) -> vec[N, T]
    cw_mul(a: mat[N, M, T], b: mat[N, M, T]) -> mat[N, M, T]
    """
    ...

def ddot(a: Any, b: Any, /) -> Any:
    """ddot(a, b): the sum of products of all components of two matrices.

    ddot(a: mat[N, M, T], b: mat[N, M, T]) -> T
    """
    ...

def degrees(x: Any, /) -> Any:
    """degrees(x): radians to degrees.

    degrees(x: F) -> F
    """
    ...

def determinant(a: Any, /) -> Any:
    """determinant(a): of a 2x2, 3x3 or 4x4 matrix.

    determinant(a: mat[2, 2, F]) -> F
    determinant(a: mat[3, 3, F]) -> F
    determinant(a: mat[4, 4, F]) -> F
    """
    ...

def diag(v: Any, /) -> Any:
    """diag(v): the square matrix with v on its diagonal.

    diag(v: vec[N, T]) -> mat[N, N, T]
    """
    ...

def div(*args: Any, **named: Any) -> Any:
    """div(a, b): the quotient; integers truncate toward zero, and x / 0 is 0 for them.
    div(x, s): a vector, matrix, quaternion or transform divided by a number.
    div(s, v): a number divided by each component of a vector or matrix.
    div(s, q): the number divided by each component of a quaternion.

    div(a: T, b: T) -> T
    div(x: quat[F], s: F) -> quat[F]
    div(x: transform[F], s: F) -> transform[F]
    div(x: vec[N, T], s: T) -> vec[N, T]
    div(x: mat[N, M, T], s: T) -> mat[N, M, T]
    div(s: T, v: vec[N, T]) -> vec[N, T]
    div(s: T, v: mat[N, M, T]) -> mat[N, M, T]
    div(s: F, q: quat[F]) -> quat[F]
    """
    ...

def div_approx(*args: Any, **named: Any) -> Any:
    """div_approx(a, b): the same as div(a, b), exact.

    div_approx(a: T, b: T) -> T
    div_approx(a: quat[F], b: F) -> quat[F]
    div_approx(a: transform[F], b: F) -> transform[F]
    div_approx(a: vec[N, T], b: T) -> vec[N, T]
    div_approx(a: mat[N, M, T], b: T) -> mat[N, M, T]
    div_approx(s: T, v: vec[N, T]) -> vec[N, T]
    div_approx(s: T, v: mat[N, M, T]) -> mat[N, M, T]
    """
    ...

def dot(a: Any, b: Any, /) -> Any:
    """dot(a, b): the inner product of two vectors or quaternions.

    dot(a: quat[F], b: quat[F]) -> F
    dot(a: vec[N, T], b: vec[N, T]) -> T
    """
    ...

def eig3(*args: Any, **named: Any) -> Any:
    """eig3(A): Q and d of a symmetric 3x3 matrix: A = Q * diag(d) * transpose(Q), with a rotation
    Q. Rotations determine the order of d, so it can be any order; only the symmetric part of A
    counts. Where two eigenvalues are equal, the derivative across their eigenvectors is left
    out. With variables for the factors as further arguments, these are set instead.

    eig3(A: mat[3, 3, F]) -> (mat[3, 3, F], vec[3, F])
    eig3(A: mat[3, 3, F], Q: mat[3, 3, F], d: vec[3, F]) -> None
    """
    ...

def erf(x: Any, /) -> Any:
    """erf(x): error function.

    erf(x: F) -> F
    """
    ...

def erfc(x: Any, /) -> Any:
    """erfc(x): 1 - erf(x), accurate for large x.

    erfc(x: F) -> F
    """
    ...

def erfcinv(x: Any, /) -> Any:
    """erfcinv(x): the number whose erfc is x, accurate for small x; infinite at 0 and 2, NaN
    beyond.

    erfcinv(x: F) -> F
    """
    ...

def erfinv(x: Any, /) -> Any:
    """erfinv(x): the number whose erf is x; infinite at -1 and 1, NaN beyond.

    erfinv(x: F) -> F
    """
    ...

def exp(x: Any, /) -> Any:
    """exp(x): e to the power x.

    exp(x: F) -> F
    """
    ...

def expect_eq(*args: Any, **named: Any) -> Any:
    """expect_eq(a, b): prints an error where a and b are not equal, and makes the launch raise one
    at its end; with `config.expect = "print"` it does not."""
    ...

def expect_near(*args: Any, **named: Any) -> Any:
    """expect_near(a, b, tolerance=1e-6): the same where components of floats differ by more than
    the tolerance, or by NaN."""
    ...

def expect_neq(*args: Any, **named: Any) -> Any:
    """expect_neq(a, b): the same where a and b are equal."""
    ...

def floor(x: Any, /) -> Any:
    """floor(x): the largest integer not above x, as a float.

    floor(x: F) -> F
    """
    ...

def floordiv(a: Any, b: Any, /) -> Any:
    """floordiv(a, b): the quotient rounded down; x // 0 is 0 for integers.

    floordiv(a: T, b: T) -> T
    """
    ...

def frac(x: Any, /) -> Any:
    """frac(x): the part after the point, x - trunc(x), with the sign of x.

    frac(x: F) -> F
    """
    ...

def get_diag(a: Any, /) -> Any:
    """get_diag(a): the diagonal of a square matrix.

    get_diag(a: mat[N, N, T]) -> vec[N, T]
    """
    ...

def hash_grid_point_id(*args: Any, **named: Any) -> Any:
    """hash_grid_point_id(id, index): the number of the point that is at a place of the order by
    cells; -1 if there is none.

    hash_grid_point_id(id: uint64, index: int32)
    """
    ...

def hash_grid_query(*args: Any, **named: Any) -> Any:
    """hash_grid_query(id, point, max_dist): goes over the points of a `HashGrid` in the cells that
    meet the box of half size max_dist around a point; some of these points are further away.
    With a further argument group, only over points of that group. `for i in
    hash_grid_query(...)`.

    hash_grid_query(id: uint64, point: vec<3,float32>, max_dist: float32)
    hash_grid_query(id: uint64, point: vec<3,float32>, max_dist: float32, group: int32)
    hash_grid_query(id: uint64, point: vec<3,float64>, max_dist: float64)
    hash_grid_query(id: uint64, point: vec<3,float64>, max_dist: float64, group: int32)
    hash_grid_query(id: uint64, point: vec<3,float16>, max_dist: float16)
    hash_grid_query(id: uint64, point: vec<3,float16>, max_dist: float16, group: int32)
    """
    ...

def hash_grid_query_next(*args: Any, **named: Any) -> Any:
    """hash_grid_query_next(query, index): steps to the next point and sets index to its number;
    False if there is none.

    hash_grid_query_next(query: HashGridQuery, index: int32)
    """
    ...

def identity(*args: Any, **named: Any) -> Any:
    """identity(n, dtype): the n x n matrix with ones on its diagonal."""
    ...

def intersect_tri_tri(v0: Any, v1: Any, v2: Any, u0: Any, u1: Any, u2: Any, /) -> Any:
    """intersect_tri_tri(v0, v1, v2, u0, u1, u2): 1 where two triangles have a point in common,
    else 0.

    intersect_tri_tri(v0: vec[3, float32 | float64], v1: vec[3, float32 | float64], v2: vec[3, float32 | float64], u0: vec[3, float32 | float64], u1: vec[3, float32 | float64], u2: vec[3, float32 | float64]) -> int32
    """
    ...

def inverse(a: Any, /) -> Any:
    """inverse(a): of a 2x2, 3x3 or 4x4 matrix; the zero matrix where the determinant is 0.

    inverse(a: mat[2, 2, F]) -> mat[2, 2, F]
    inverse(a: mat[3, 3, F]) -> mat[3, 3, F]
    inverse(a: mat[4, 4, F]) -> mat[4, 4, F]
    """
    ...

def inverse_approx(a: Any, /) -> Any:
    """inverse_approx(a): the same as inverse(a), exact.

    inverse_approx(a: mat[2, 2, F]) -> mat[2, 2, F]
    inverse_approx(a: mat[3, 3, F]) -> mat[3, 3, F]
    inverse_approx(a: mat[4, 4, F]) -> mat[4, 4, F]
    """
    ...

def invert(a: Any, /) -> Any:
    """invert(a): every bit flipped.
    invert(a), on vectors and matrices: by component, every bit flipped.

    invert(a: I) -> I
    invert(a: vec[N, I]) -> vec[N, I]
    invert(a: mat[N, M, I]) -> mat[N, M, I]
    """
    ...

def isfinite(x: Any, /) -> Any:
    """isfinite(x): true where x (or every component) is neither NaN nor infinite.

    isfinite(x: F) -> bool
    isfinite(x: quat[F]) -> bool
    isfinite(x: transform[F]) -> bool
    isfinite(x: vec[N, F]) -> bool
    isfinite(x: mat[N, M, F]) -> bool
    """
    ...

def isinf(x: Any, /) -> Any:
    """isinf(x): true where x (or any component) is infinite.

    isinf(x: F) -> bool
    isinf(x: quat[F]) -> bool
    isinf(x: transform[F]) -> bool
    isinf(x: vec[N, F]) -> bool
    isinf(x: mat[N, M, F]) -> bool
    """
    ...

def isnan(x: Any, /) -> Any:
    """isnan(x): true where x (or any component) is NaN.

    isnan(x: F) -> bool
    isnan(x: quat[F]) -> bool
    isnan(x: transform[F]) -> bool
    isnan(x: vec[N, F]) -> bool
    isnan(x: mat[N, M, F]) -> bool
    """
    ...

def len(*args: Any, **named: Any) -> Any:
    """len(x): components of a vector, rows of a matrix, elements of an array along its first
    dimension."""
    ...

def length(v: Any, /) -> Any:
    """length(v): the Euclidean length. The gradient at 0 is zero.

    length(v: quat[F]) -> F
    length(v: vec[N, F]) -> F
    """
    ...

def length_sq(v: Any, /) -> Any:
    """length_sq(v): the square of the length.

    length_sq(v: quat[F]) -> F
    length_sq(v: vec[N, T]) -> T
    """
    ...

def lerp(a: Any, b: Any, t: Any, /) -> Any:
    """lerp(a, b, t): a * (1 - t) + b * t of vectors, matrices, quaternions or transforms.
    lerp(a, b, t): a * (1 - t) + b * t.

    lerp(a: quat[F], b: quat[F], t: F) -> quat[F]
    lerp(a: transform[F], b: transform[F], t: F) -> transform[F]
    lerp(a: vec[N, F], b: vec[N, F], t: F) -> vec[N, F]
    lerp(a: mat[N, M, F], b: mat[N, M, F], t: F) -> mat[N, M, F]
    lerp(a: F, b: F, t: F) -> F
    """
    ...

def log(x: Any, /) -> Any:
    """log(x): natural logarithm; -inf at 0, NaN below.

    log(x: F) -> F
    """
    ...

def log10(x: Any, /) -> Any:
    """log10(x): logarithm to base 10.

    log10(x: F) -> F
    """
    ...

def log2(x: Any, /) -> Any:
    """log2(x): logarithm to base 2.

    log2(x: F) -> F
    """
    ...

def lower_bound(*args: Any, **named: Any) -> Any:
    """lower_bound(a, value), lower_bound(a, begin, end, value): the first index in a sorted array
    of one dimension (or in the part of it from begin up to end - 1) whose element is not less
    than value; the last index if all are less.

    lower_bound(a: array[T], value: T) -> int32
    lower_bound(a: array[T], begin: int32, end: int32, value: T) -> int32
    """
    ...

def lshift(a: Any, b: Any, /) -> Any:
    """lshift(a, b): bits moved up by b modulo the bit width.
    lshift(a, b), on vectors and matrices: by component, bits moved up by b modulo the bit
    width.

    lshift(a: I, b: I) -> I
    lshift(a: vec[N, I], b: vec[N, I]) -> vec[N, I]
    lshift(a: mat[N, M, I], b: mat[N, M, I]) -> mat[N, M, I]
    """
    ...

def matrix(*args: Any, **named: Any) -> Any:
    """matrix(a, b, ..., shape=(rows, cols), dtype=t): a matrix of its arguments, row by row, or of
    one number repeated, or of zeros."""
    ...

def matrix_from_cols(*args: Any, **named: Any) -> Any:
    """matrix_from_cols(v, ...): the matrix that has these vectors as columns."""
    ...

def matrix_from_rows(*args: Any, **named: Any) -> Any:
    """matrix_from_rows(v, ...): the matrix that has these vectors as rows."""
    ...

def max(*args: Any, **named: Any) -> Any:
    """max(v): the largest component; NaNs are skipped.
    max(a, b): the larger number; a NaN counts as missing.
    max(a, b), on vectors: by component, the larger number; a NaN counts as missing.

    max(v: vec[N, T]) -> T
    max(a: T, b: T) -> T
    max(a: vec[N, T], b: vec[N, T]) -> vec[N, T]
    """
    ...

def mesh_eval_face_normal(*args: Any, **named: Any) -> Any:
    """mesh_eval_face_normal(id, face): the unit normal of a face; 0 where there is no such mesh,
    face or corner.

    mesh_eval_face_normal(id: uint64, face: int32)
    """
    ...

def mesh_eval_position(*args: Any, **named: Any) -> Any:
    """mesh_eval_position(id, face, bary_u, bary_v): the point of a face with these weights of its
    first two corners; 0 where there is no such mesh, face or corner.

    mesh_eval_position(id: uint64, face: int32, bary_u: float32, bary_v: float32)
    """
    ...

def mesh_eval_velocity(*args: Any, **named: Any) -> Any:
    """mesh_eval_velocity(id, face, bary_u, bary_v): the velocity of a point on a face; 0 where
    there is no such mesh, face or corner, and where it has no velocities.

    mesh_eval_velocity(id: uint64, face: int32, bary_u: float32, bary_v: float32)
    """
    ...

def mesh_get(*args: Any, **named: Any) -> Any:
    """mesh_get(id): the mesh with its arrays: points, velocities (empty where it has none) and
    indices.

    mesh_get(id: uint64)
    """
    ...

def mesh_get_bvh(*args: Any, **named: Any) -> Any:
    """mesh_get_bvh(id): the number of the mesh's own tree of faces, for `bvh_query_aabb` and
    similar queries.

    mesh_get_bvh(id: uint64)
    """
    ...

def mesh_get_group_root(*args: Any, **named: Any) -> Any:
    """mesh_get_group_root(id, group): the node that has all faces of a group, for queries; -1 if
    there is none.

    mesh_get_group_root(id: uint64, group: int32)
    """
    ...

def mesh_get_index(*args: Any, **named: Any) -> Any:
    """mesh_get_index(id, index): the number of the point at a corner, by its place in the indices;
    -1 if there is none.

    mesh_get_index(id: uint64, index: int32)
    """
    ...

def mesh_get_point(*args: Any, **named: Any) -> Any:
    """mesh_get_point(id, index): the point of a corner, by its place in the indices; 0 where there
    is no such mesh, face or corner.

    mesh_get_point(id: uint64, index: int32)
    """
    ...

def mesh_get_velocity(*args: Any, **named: Any) -> Any:
    """mesh_get_velocity(id, index): the velocity of a corner, by its place in the indices; 0 where
    there is no such mesh, face or corner, and where it has no velocities.

    mesh_get_velocity(id: uint64, index: int32)
    """
    ...

def mesh_query_aabb(*args: Any, **named: Any) -> Any:
    """mesh_query_aabb(id, low, high): goes over the faces whose boxes meet the box from low to
    high. `for face in mesh_query_aabb(...)`.

    mesh_query_aabb(id: uint64, low: vec<3,float32>, high: vec<3,float32>)
    """
    ...

def mesh_query_aabb_next(*args: Any, **named: Any) -> Any:
    """mesh_query_aabb_next(query, index): steps to the next face and sets index to its number;
    False if there is none.

    mesh_query_aabb_next(query: MeshQueryAABB, index: int32)
    """
    ...

def mesh_query_furthest_point_no_sign(*args: Any, **named: Any) -> Any:
    """mesh_query_furthest_point_no_sign(id, point, min_dist): the point of the mesh that is
    furthest from a point, further than min_dist, as a `MeshQueryPoint`: `result` (whether there
    is one), `face`, and the weights `u`, `v` of the face's first two corners. Faces without
    area do not count.
    mesh_query_furthest_point_no_sign(id, point, min_dist, face, bary_u, bary_v): the same, with
    the results in variables, which do not change if there is none; returns `result`.

    mesh_query_furthest_point_no_sign(id: uint64, point: vec<3,float32>, min_dist: float32)
    mesh_query_furthest_point_no_sign(id: uint64, point: vec<3,float32>, min_dist: float32, face: int32, bary_u: float32, bary_v: float32)
    """
    ...

def mesh_query_next(*args: Any, **named: Any) -> Any:
    """mesh_query_next(query, index): steps to the next face and sets index to its number; False if
    there is none.

    mesh_query_next(query: MeshQueryAABB, index: int32)
    """
    ...

def mesh_query_point(*args: Any, **named: Any) -> Any:
    """mesh_query_point(id, point, max_dist): the point of the mesh that is nearest to a point,
    nearer than max_dist, as a `MeshQueryPoint`: `result` (whether there is one), `face`, and
    the weights `u`, `v` of the face's first two corners. Faces without area do not count.
    `sign` is negative inside of the mesh, where two of three rays along the axes come out of
    it.
    mesh_query_point(id, point, max_dist, inside, face, bary_u, bary_v): the same, with the
    results in variables, which do not change if there is none; returns `result`.

    mesh_query_point(id: uint64, point: vec<3,float32>, max_dist: float32)
    mesh_query_point(id: uint64, point: vec<3,float32>, max_dist: float32, inside: float32, face: int32, bary_u: float32, bary_v: float32)
    """
    ...

def mesh_query_point_no_sign(*args: Any, **named: Any) -> Any:
    """mesh_query_point_no_sign(id, point, max_dist): the point of the mesh that is nearest to a
    point, nearer than max_dist, as a `MeshQueryPoint`: `result` (whether there is one), `face`,
    and the weights `u`, `v` of the face's first two corners. Faces without area do not count.
    mesh_query_point_no_sign(id, point, max_dist, face, bary_u, bary_v): the same, with the
    results in variables, which do not change if there is none; returns `result`.

    mesh_query_point_no_sign(id: uint64, point: vec<3,float32>, max_dist: float32)
    mesh_query_point_no_sign(id: uint64, point: vec<3,float32>, max_dist: float32, face: int32, bary_u: float32, bary_v: float32)
    """
    ...

def mesh_query_point_sign_normal(*args: Any, **named: Any) -> Any:
    """mesh_query_point_sign_normal(id, point, max_dist, epsilon=0.001): the point of the mesh that
    is nearest to a point, nearer than max_dist, as a `MeshQueryPoint`: `result` (whether there
    is one), `face`, and the weights `u`, `v` of the face's first two corners. Faces without
    area do not count. `sign` is negative inside of the mesh, by the normals of the faces around
    the nearest point (within epsilon mean edges of it), weighted by their angles.
    mesh_query_point_sign_normal(id, point, max_dist, inside, face, bary_u, bary_v,
    epsilon=0.001): the same, with the results in variables, which do not change if there is
    none; returns `result`.

    mesh_query_point_sign_normal(id: uint64, point: vec<3,float32>, max_dist: float32, epsilon: float32 = 0.001)
    mesh_query_point_sign_normal(id: uint64, point: vec<3,float32>, max_dist: float32, inside: float32, face: int32, bary_u: float32, bary_v: float32, epsilon: float32 = 0.001)
    """
    ...

def mesh_query_point_sign_parity(*args: Any, **named: Any) -> Any:
    """mesh_query_point_sign_parity(id, point, max_dist, n_sample=1, perturbation_scale=0.1): the
    point of the mesh that is nearest to a point, nearer than max_dist, as a `MeshQueryPoint`:
    `result` (whether there is one), `face`, and the weights `u`, `v` of the face's first two
    corners. Faces without area do not count. `sign` is negative inside of the mesh, where at
    least half of n_sample rays, always the same ones around (1, 1, 1), cross an odd number of
    faces.
    mesh_query_point_sign_parity(id, point, max_dist, inside, face, bary_u, bary_v, n_sample=1,
    perturbation_scale=0.1): the same, with the results in variables, which do not change if
    there is none; returns `result`.

    mesh_query_point_sign_parity(id: uint64, point: vec<3,float32>, max_dist: float32, n_sample: int32 = 1, perturbation_scale: float32 = 0.1)
    mesh_query_point_sign_parity(id: uint64, point: vec<3,float32>, max_dist: float32, inside: float32, face: int32, bary_u: float32, bary_v: float32, n_sample: int32 = 1, perturbation_scale: float32 = 0.1)
    """
    ...

def mesh_query_point_sign_winding_number(*args: Any, **named: Any) -> Any:
    """mesh_query_point_sign_winding_number(id, point, max_dist, accuracy=2.0, threshold=0.5): the
    point of the mesh that is nearest to a point, nearer than max_dist, as a `MeshQueryPoint`:
    `result` (whether there is one), `face`, and the weights `u`, `v` of the face's first two
    corners. Faces without area do not count. `sign` is negative inside of the mesh, if it winds
    around the point more than threshold times. accuracy: parts of it at a distance of so many
    of their radii count as one face, in meshes with support_winding_number.
    mesh_query_point_sign_winding_number(id, point, max_dist, inside, face, bary_u, bary_v,
    accuracy=2.0, threshold=0.5): the same, with the results in variables, which do not change
    if there is none; returns `result`.

    mesh_query_point_sign_winding_number(id: uint64, point: vec<3,float32>, max_dist: float32, accuracy: float32 = 2.0, threshold: float32 = 0.5)
    mesh_query_point_sign_winding_number(id: uint64, point: vec<3,float32>, max_dist: float32, inside: float32, face: int32, bary_u: float32, bary_v: float32, accuracy: float32 = 2.0, threshold: float32 = 0.5)
    """
    ...

def mesh_query_ray(*args: Any, **named: Any) -> Any:
    """mesh_query_ray(id, start, dir, max_t, root=-1): where a ray meets the mesh first, as a
    `MeshQueryRay`: `result` (whether it meets one, before max_t), `face`, `t` (in lengths of
    dir), the weights `u`, `v` of the face's first two corners, its unit `normal`, and `sign`: 1
    at its front, -1 at its back. root: the node below which to look.
    mesh_query_ray(id, start, dir, max_t, t, bary_u, bary_v, sign, normal, face, root=-1): the
    same, with the results in variables, which do not change if the ray meets no face; returns
    `result`.

    mesh_query_ray(id: uint64, start: vec<3,float32>, dir: vec<3,float32>, max_t: float32, root: int32 = -1)
    mesh_query_ray(id: uint64, start: vec<3,float32>, dir: vec<3,float32>, max_t: float32, t: float32, bary_u: float32, bary_v: float32, sign: float32, normal: vec<3,float32>, face: int32, root: int32 = -1)
    """
    ...

def mesh_query_ray_anyhit(*args: Any, **named: Any) -> Any:
    """mesh_query_ray_anyhit(id, start, dir, max_t, root=-1): whether a ray meets the mesh before
    max_t.

    mesh_query_ray_anyhit(id: uint64, start: vec<3,float32>, dir: vec<3,float32>, max_t: float32, root: int32 = -1)
    """
    ...

def mesh_query_ray_count_intersections(*args: Any, **named: Any) -> Any:
    """mesh_query_ray_count_intersections(id, start, dir, root=-1): how many faces a ray meets.

    mesh_query_ray_count_intersections(id: uint64, start: vec<3,float32>, dir: vec<3,float32>, root: int32 = -1)
    """
    ...

def mesh_query_sphere(*args: Any, **named: Any) -> Any:
    """mesh_query_sphere(id, center, radius): goes over the faces that meet a ball. `for face in
    mesh_query_sphere(...)`.

    mesh_query_sphere(id: uint64, center: vec<3,float32>, radius: float32)
    """
    ...

def min(*args: Any, **named: Any) -> Any:
    """min(v): the smallest component; NaNs are skipped.
    min(a, b): the smaller number; a NaN counts as missing.
    min(a, b), on vectors: by component, the smaller number; a NaN counts as missing.

    min(v: vec[N, T]) -> T
    min(a: T, b: T) -> T
    min(a: vec[N, T], b: vec[N, T]) -> vec[N, T]
    """
    ...

def mod(a: Any, b: Any, /) -> Any:
    """mod(a, b): the remainder of truncated division, with the sign of `a`; x % 0 is 0 for
    integers and NaN for floats.
    mod(a, b), on vectors and matrices: by component, the remainder of truncated division, with
    the sign of `a`; x % 0 is 0 for integers and NaN for floats.

    mod(a: T, b: T) -> T
    mod(a: vec[N, T], b: vec[N, T]) -> vec[N, T]
    mod(a: mat[N, M, T], b: mat[N, M, T]) -> mat[N, M, T]
    """
    ...

def mul(*args: Any, **named: Any) -> Any:
    """mul(a, b): the product of two numbers of one type; integers wrap.
    mul(x, s): a vector, matrix, quaternion or transform times a number.
    mul(a, v): a matrix times a column vector.
    mul(v, a): a row vector times a matrix.
    mul(a, b): the product of two matrices.
    mul(a, b): the product of two quaternions; as rotations, b comes first.
    mul(a, b): the motion b, followed by the motion a.

    mul(a: T, b: T) -> T
    mul(x: quat[F], s: F) -> quat[F]
    mul(x: transform[F], s: F) -> transform[F]
    mul(x: vec[N, T], s: T) -> vec[N, T]
    mul(x: mat[N, M, T], s: T) -> mat[N, M, T]
    mul(a: F, b: quat[F]) -> quat[F]
    mul(a: F, b: transform[F]) -> transform[F]
    mul(a: T, b: vec[N, T]) -> vec[N, T]
    mul(a: T, b: mat[N, M, T]) -> mat[N, M, T]
    mul(a: mat[N, M, T], v: vec[M, T]) -> vec[N, T]
    mul(v: vec[N, T], a: mat[N, M, T]) -> vec[M, T]
    mul(a: mat[N, M, T], b: mat[M, K, T]) -> mat[N, K, T]
    mul(a: quat[F], b: quat[F]) -> quat[F]
    mul(a: transform[F], b: transform[F]) -> transform[F]
    """
    ...

def neg(x: Any, /) -> Any:
    """neg(x): the number, vector, matrix, quaternion or transform with the opposite sign.

    neg(x: T) -> T
    neg(x: quat[F]) -> quat[F]
    neg(x: transform[F]) -> transform[F]
    neg(x: vec[N, T]) -> vec[N, T]
    neg(x: mat[N, M, T]) -> mat[N, M, T]
    """
    ...

def noise(state: Any, p: Any, /) -> Any:
    """noise(state, p): smooth noise at a point p, a number or a vector of 2 to 4 components: 0 at
    whole coordinates, between -1 and 1, its features about 1 wide. The state, which does not
    change, chooses the field.

    noise(state: uint32, p: F) -> F
    noise(state: uint32, p: vec[2, F]) -> F
    noise(state: uint32, p: vec[3, F]) -> F
    noise(state: uint32, p: vec[4, F]) -> F
    """
    ...

def nonzero(x: Any, /) -> Any:
    """nonzero(x): 0 where x is 0, else 1.

    nonzero(x: T) -> T
    """
    ...

def norm_huber(v: Any, delta: Any = ..., /) -> Any:
    """norm_huber(v, delta=1.0): |v|^2 / 2 up to the length delta, linear beyond; for delta >= 0.

    norm_huber(v: vec[N, F], delta: F = 1.0) -> F
    """
    ...

def norm_l1(v: Any, /) -> Any:
    """norm_l1(v): the sum of the magnitudes of the components.

    norm_l1(v: vec[N, F]) -> F
    """
    ...

def norm_l2(v: Any, /) -> Any:
    """norm_l2(v): the Euclidean length.

    norm_l2(v: vec[N, F]) -> F
    """
    ...

def norm_pseudo_huber(v: Any, delta: Any = ..., /) -> Any:
    """norm_pseudo_huber(v, delta=1.0): delta * sqrt(1 + |v|^2 / delta^2), for delta > 0.

    norm_pseudo_huber(v: vec[N, F], delta: F = 1.0) -> F
    """
    ...

def normalize(*args: Any, **named: Any) -> Any:
    """normalize(v): v divided by its length. The zero vector stays, with a zero gradient.
    normalize(q): q divided by its length; the identity for 0, with a zero gradient.

    normalize(v: vec[N, F]) -> vec[N, F]
    normalize(q: quat[F]) -> quat[F]
    """
    ...

def outer(a: Any, b: Any, /) -> Any:
    """outer(a, b): the matrix of products a[i] * b[j].

    outer(a: vec[N, T], b: vec[M, T]) -> mat[N, M, T]
    """
    ...

def pnoise(*args: Any, **named: Any) -> Any:
    """pnoise(state, p, px, ...): noise that repeats itself after px, ... whole units along each
    axis; a period below 1 counts as none.

    pnoise(state: uint32, p: F, px: int32) -> F
    pnoise(state: uint32, p: vec[2, F], px: int32, py: int32) -> F
    pnoise(state: uint32, p: vec[3, F], px: int32, py: int32, pz: int32) -> F
    pnoise(state: uint32, p: vec[4, F], px: int32, py: int32, pz: int32, pt: int32) -> F
    """
    ...

def poisson(state: Any, lam: Any, /) -> Any:
    """poisson(state, lam): a random uint32 of the Poisson distribution of mean lam, up to 2**32.
    Below 10 by D. E. Knuth's product of uniform numbers, from there on by W. Hoermann, "The
    transformed rejection method for generating Poisson random variables" (1993). 0 for lam <= 0
    and NaN, which draw nothing. In a kernel, the variable `state` is set to the next state.

    poisson(state: uint32, lam: float32) -> uint32
    """
    ...

def pos(x: Any, /) -> Any:
    """pos(x): x itself.

    pos(x: T) -> T
    pos(x: quat[F]) -> quat[F]
    pos(x: transform[F]) -> transform[F]
    pos(x: bool) -> bool
    pos(x: vec[N, T]) -> vec[N, T]
    pos(x: mat[N, M, T]) -> mat[N, M, T]
    """
    ...

def pow(x: Any, y: Any, /) -> Any:
    """pow(x, y): x to the power y; NaN for a negative x and a fractional y.

    pow(x: F, y: F) -> F
    """
    ...

def print(*args: Any, **named: Any) -> Any:
    """print(a, ...): prints values and strings, f-strings too, with blanks between them and a new
    line. The output of kernels appears on Python's standard output when the launch has ended,
    in the order of the threads; the backward pass does not print it again."""
    ...

def printf(*args: Any, **named: Any) -> Any:
    """printf(format, a, ...): prints values by a format of C: %d, %u, %x, %f, %e, %g, %s."""
    ...

def qr3(*args: Any, **named: Any) -> Any:
    """qr3(A): Q and R of a 3x3 matrix: A = Q * R, with a rotation Q and an upper triangle R whose
    first two diagonal entries are not negative. Exact where the first two columns of A are
    independent; elsewhere the derivative leaves out terms with a division by zero. With
    variables for the factors as further arguments, these are set instead.

    qr3(A: mat[3, 3, F]) -> (mat[3, 3, F], mat[3, 3, F])
    qr3(A: mat[3, 3, F], Q: mat[3, 3, F], R: mat[3, 3, F]) -> None
    """
    ...

def quat_between_vectors(a: Any, b: Any, /) -> Any:
    """quat_between_vectors(a, b): the shortest rotation from the direction of a to that of b; half
    a turn about some axis if they are opposite, none if one is 0.

    quat_between_vectors(a: vec[3, F], b: vec[3, F]) -> quat[F]
    """
    ...

def quat_from_axis_angle(axis: Any, angle: Any, /) -> Any:
    """quat_from_axis_angle(axis, angle): the rotation about an axis of length 1.

    quat_from_axis_angle(axis: vec[3, F], angle: F) -> quat[F]
    """
    ...

def quat_from_euler(e: Any, i: Any, j: Any, k: Any, /) -> Any:
    """quat_from_euler(e, i, j, k): the rotation by e[i] about the fixed axis i, then by e[j] about
    j, then by e[k] about k; axes are 0, 1 and 2.

    quat_from_euler(e: vec[3, F], i: int32, j: int32, k: int32) -> quat[F]
    """
    ...

def quat_from_matrix(m: Any, /) -> Any:
    """quat_from_matrix(m): the rotation of the upper left 3x3 block of m.

    quat_from_matrix(m: mat[3, 3, F]) -> quat[F]
    quat_from_matrix(m: mat[4, 4, F]) -> quat[F]
    """
    ...

def quat_identity(*args: Any, **named: Any) -> Any:
    """quat_identity(dtype=float): the rotation by angle 0: (0, 0, 0, 1)."""
    ...

def quat_inverse(q: Any, /) -> Any:
    """quat_inverse(q): the conjugate, which is the inverse of a rotation.

    quat_inverse(q: quat[F]) -> quat[F]
    """
    ...

def quat_rotate(q: Any, v: Any, /) -> Any:
    """quat_rotate(q, v): the vector, rotated by q.

    quat_rotate(q: quat[F], v: vec[3, F]) -> vec[3, F]
    """
    ...

def quat_rotate_inv(q: Any, v: Any, /) -> Any:
    """quat_rotate_inv(q, v): the vector, rotated by the inverse of q.

    quat_rotate_inv(q: quat[F], v: vec[3, F]) -> vec[3, F]
    """
    ...

def quat_rpy(roll: Any, pitch: Any, yaw: Any, /) -> Any:
    """quat_rpy(roll, pitch, yaw): the rotation about the fixed axes x, then y, then z.

    quat_rpy(roll: F, pitch: F, yaw: F) -> quat[F]
    """
    ...

def quat_slerp(a: Any, b: Any, t: Any, /) -> Any:
    """quat_slerp(a, b, t): from a at t = 0 on the shortest way to b at t = 1, at constant speed,
    and on beyond them.

    quat_slerp(a: quat[F], b: quat[F], t: F) -> quat[F]
    """
    ...

def quat_to_axis_angle(*args: Any, **named: Any) -> Any:
    """quat_to_axis_angle(q): the axis, of length 1, and the angle, from 0 to pi; the axis of no
    rotation is 0.
    quat_to_axis_angle(q, axis, angle): stores the axis and the angle of q in two variables.

    quat_to_axis_angle(q: quat[F]) -> (vec[3, F], F)
    quat_to_axis_angle(q: quat[F], axis: vec[3, F], angle: F) -> None
    """
    ...

def quat_to_euler(q: Any, i: Any, j: Any, k: Any, /) -> Any:
    """quat_to_euler(q, i, j, k): the angles of q about the fixed axes i, j and k, by axis; where i
    is k, the third angle stands in the place of the axis that is left over.

    quat_to_euler(q: quat[F], i: int32, j: int32, k: int32) -> vec[3, F]
    """
    ...

def quat_to_matrix(q: Any, /) -> Any:
    """quat_to_matrix(q): the 3x3 matrix of the rotation q.

    quat_to_matrix(q: quat[F]) -> mat[3, 3, F]
    """
    ...

def quat_to_rpy(q: Any, /) -> Any:
    """quat_to_rpy(q): roll, pitch (from -pi/2 to pi/2) and yaw, as quat_rpy takes them.

    quat_to_rpy(q: quat[F]) -> vec[3, F]
    """
    ...

def quat_twist(axis: Any, q: Any, /) -> Any:
    """quat_twist(axis, q): the part of q that turns about an axis of length 1.

    quat_twist(axis: vec[3, F], q: quat[F]) -> quat[F]
    """
    ...

def quat_twist_angle(axis: Any, q: Any, /) -> Any:
    """quat_twist_angle(axis, q): the size of the angle by which q turns about an axis of length 1,
    from 0 to 2 pi.

    quat_twist_angle(axis: vec[3, F], q: quat[F]) -> F
    """
    ...

def quat_twist_angle_signed(axis: Any, q: Any, /) -> Any:
    """quat_twist_angle_signed(axis, q): the angle by which q turns about an axis of length 1, from
    -2 pi to 2 pi.

    quat_twist_angle_signed(axis: vec[3, F], q: quat[F]) -> F
    """
    ...

def quaternion(*args: Any, **named: Any) -> Any:
    """quaternion(x, y, z, w, dtype=t): a quaternion of its components, or of (vector part, w), or
    zero."""
    ...

def radians(x: Any, /) -> Any:
    """radians(x): degrees to radians.

    radians(x: F) -> F
    """
    ...

def rand_init(*args: Any, **named: Any) -> Any:
    """rand_init(seed, offset=none): the first state of a sequence of random numbers, a uint32. The
    offset (the thread's index, say) gives each thread a sequence of its own.

    rand_init(seed: int32 | uint32) -> uint32
    rand_init(seed: int32 | uint32, offset: int32 | uint32) -> uint32
    """
    ...

def randf(*args: Any, **named: Any) -> Any:
    """randf(state), randf(state, low, high): a random float32, at least 0 and less than 1, a
    multiple of 2**-24; or this scaled to low and high. In a kernel, the variable `state` is set
    to the next state.

    randf(state: uint32) -> float32
    randf(state: uint32, low: float32, high: float32) -> float32
    """
    ...

def randi(*args: Any, **named: Any) -> Any:
    """randi(state), randi(state, low, high): a random int32, of all or from low up to high - 1
    (low, where that leaves none). In a kernel, the variable `state` is set to the next state.

    randi(state: uint32) -> int32
    randi(state: uint32, low: int32, high: int32) -> int32
    """
    ...

def randn(state: Any, /) -> Any:
    """randn(state): a random number of the normal distribution with mean 0 and variance 1, by the
    method of G. E. P. Box and M. E. Muller (1958) from two draws. In a kernel, the variable
    `state` is set to the next state.

    randn(state: uint32) -> float32
    """
    ...

def randu(*args: Any, **named: Any) -> Any:
    """randu(state), randu(state, low, high): a random uint32, of all or from low up to high - 1
    (low, where that leaves none). In a kernel, the variable `state` is set to the next state.

    randu(state: uint32) -> uint32
    randu(state: uint32, low: uint32, high: uint32) -> uint32
    """
    ...

def rint(x: Any, /) -> Any:
    """rint(x): the nearest integer, halves to the even one.

    rint(x: F) -> F
    """
    ...

def round(x: Any, /) -> Any:
    """round(x): the nearest integer, halves away from zero.

    round(x: F) -> F
    """
    ...

def rshift(a: Any, b: Any, /) -> Any:
    """rshift(a, b): bits moved down, the sign kept; b as in lshift.
    rshift(a, b), on vectors and matrices: by component, bits moved down, the sign kept; b as in
    lshift.

    rshift(a: I, b: I) -> I
    rshift(a: vec[N, I], b: vec[N, I]) -> vec[N, I]
    rshift(a: mat[N, M, I], b: mat[N, M, I]) -> mat[N, M, I]
    """
    ...

def sample_cdf(state: Any, cdf: Any, /) -> Any:
    """sample_cdf(state, cdf): a random index into an array of cumulated probabilities that ends
    with 1: that of the first which is not less than randf(state). In a kernel, the variable
    `state` is set to the next state.

    sample_cdf(state: uint32, cdf: array[float32]) -> int32
    """
    ...

def sample_triangle(state: Any, /) -> Any:
    """sample_triangle(state): a random point of a triangle as two barycentric coordinates; the
    third is 1 minus both. In a kernel, the variable `state` is set to the next state.

    sample_triangle(state: uint32) -> vec[2, float32]
    """
    ...

def sample_unit_cube(state: Any, /) -> Any:
    """sample_unit_cube(state): a random point of the cube with side 1 around the origin. In a
    kernel, the variable `state` is set to the next state.

    sample_unit_cube(state: uint32) -> vec[3, float32]
    """
    ...

def sample_unit_disk(state: Any, /) -> Any:
    """sample_unit_disk(state): a random point inside the circle with radius 1. In a kernel, the
    variable `state` is set to the next state.

    sample_unit_disk(state: uint32) -> vec[2, float32]
    """
    ...

def sample_unit_hemisphere(state: Any, /) -> Any:
    """sample_unit_hemisphere(state): a random point inside the sphere with radius 1, z >= 0. In a
    kernel, the variable `state` is set to the next state.

    sample_unit_hemisphere(state: uint32) -> vec[3, float32]
    """
    ...

def sample_unit_hemisphere_surface(state: Any, /) -> Any:
    """sample_unit_hemisphere_surface(state): a random point of the sphere with radius 1, z >= 0.
    In a kernel, the variable `state` is set to the next state.

    sample_unit_hemisphere_surface(state: uint32) -> vec[3, float32]
    """
    ...

def sample_unit_ring(state: Any, /) -> Any:
    """sample_unit_ring(state): a random point of the circle with radius 1. In a kernel, the
    variable `state` is set to the next state.

    sample_unit_ring(state: uint32) -> vec[2, float32]
    """
    ...

def sample_unit_sphere(state: Any, /) -> Any:
    """sample_unit_sphere(state): a random point inside the sphere with radius 1. In a kernel, the
    variable `state` is set to the next state.

    sample_unit_sphere(state: uint32) -> vec[3, float32]
    """
    ...

def sample_unit_sphere_surface(state: Any, /) -> Any:
    """sample_unit_sphere_surface(state): a random point of the sphere with radius 1. In a kernel,
    the variable `state` is set to the next state.

    sample_unit_sphere_surface(state: uint32) -> vec[3, float32]
    """
    ...

def sample_unit_square(state: Any, /) -> Any:
    """sample_unit_square(state): a random point of the square with side 1 around the origin. In a
    kernel, the variable `state` is set to the next state.

    sample_unit_square(state: uint32) -> vec[2, float32]
    """
    ...

def select(cond: Any, a: Any, b: Any, /) -> Any:
    """select(cond, a, b): b where the condition holds, else a; where() reads better.

    select(cond: bool | I, a: X, b: X) -> X
    """
    ...

def sign(x: Any, /) -> Any:
    """sign(x): -1 where x < 0, else 1.
    sign(x), on vectors: by component, -1 where x < 0, else 1.

    sign(x: T) -> T
    sign(x: vec[N, T]) -> vec[N, T]
    """
    ...

def sin(x: Any, /) -> Any:
    """sin(x): sine of an angle in radians.

    sin(x: F) -> F
    """
    ...

def sinh(x: Any, /) -> Any:
    """sinh(x): hyperbolic sine.

    sinh(x: F) -> F
    """
    ...

def skew(v: Any, /) -> Any:
    """skew(v): the matrix that multiplies like cross(v, ...).

    skew(v: vec[3, T]) -> mat[3, 3, T]
    """
    ...

def smooth_normalize(v: Any, delta: Any = ..., /) -> Any:
    """smooth_normalize(v, delta=1.0): v / norm_pseudo_huber(v, delta).

    smooth_normalize(v: vec[N, F], delta: F = 1.0) -> vec[N, F]
    """
    ...

def smoothstep(a: Any, b: Any, x: Any, /) -> Any:
    """smoothstep(a, b, x): 0 before a, 1 after b, a cubic between; b may be less than a.

    smoothstep(a: F, b: F, x: F) -> F
    """
    ...

def spatial_adjoint(r: Any, s: Any, /) -> Any:
    """spatial_adjoint(r, s): the 6x6 matrix of blocks r, 0 over s, r.

    spatial_adjoint(r: mat[3, 3, F], s: mat[3, 3, F]) -> mat[6, 6, F]
    """
    ...

def spatial_bottom(s: Any, /) -> Any:
    """spatial_bottom(s): the last three components: linear velocity, or force.

    spatial_bottom(s: vec[6, F]) -> vec[3, F]
    """
    ...

def spatial_cross(a: Any, b: Any, /) -> Any:
    """spatial_cross(a, b): the rate of change of the twist b that moves with the twist a.

    spatial_cross(a: vec[6, F], b: vec[6, F]) -> vec[6, F]
    """
    ...

def spatial_cross_dual(a: Any, b: Any, /) -> Any:
    """spatial_cross_dual(a, b): the rate of change of the wrench b that moves with the twist a.

    spatial_cross_dual(a: vec[6, F], b: vec[6, F]) -> vec[6, F]
    """
    ...

def spatial_dot(a: Any, b: Any, /) -> Any:
    """spatial_dot(a, b): the inner product; of a wrench and a twist, the power.

    spatial_dot(a: vec[6, F], b: vec[6, F]) -> F
    """
    ...

def spatial_top(s: Any, /) -> Any:
    """spatial_top(s): the first three components: angular velocity, or torque.

    spatial_top(s: vec[6, F]) -> vec[3, F]
    """
    ...

def sqrt(x: Any, /) -> Any:
    """sqrt(x): square root; NaN below 0. The derivative at 0 is infinite.

    sqrt(x: F) -> F
    """
    ...

def step(x: Any, /) -> Any:
    """step(x): 1 where x < 0, else 0.

    step(x: T) -> T
    """
    ...

def sub(a: Any, b: Any, /) -> Any:
    """sub(a, b): the difference of two numbers, vectors, matrices, quaternions or transforms of
    one type.

    sub(a: T, b: T) -> T
    sub(a: quat[F], b: quat[F]) -> quat[F]
    sub(a: transform[F], b: transform[F]) -> transform[F]
    sub(a: vec[N, T], b: vec[N, T]) -> vec[N, T]
    sub(a: mat[N, M, T], b: mat[N, M, T]) -> mat[N, M, T]
    """
    ...

def svd2(*args: Any, **named: Any) -> Any:
    """svd2(A): U, sigma and V of a 2x2 matrix: A = U * diag(sigma) * transpose(V), with orthogonal
    U and V. A pair of columns of U and V may have either sign. Where two singular values are
    equal, the derivative across their columns is left out: functions that do not depend on it,
    such as the rotation U * transpose(V), keep their exact derivative. sigma falls and is not
    negative. With variables for the factors as further arguments, these are set instead.

    svd2(A: mat[2, 2, F]) -> (mat[2, 2, F], vec[2, F], mat[2, 2, F])
    svd2(A: mat[2, 2, F], U: mat[2, 2, F], sigma: vec[2, F], V: mat[2, 2, F]) -> None
    """
    ...

def svd3(*args: Any, **named: Any) -> Any:
    """svd3(A): U, sigma and V of a 3x3 matrix: A = U * diag(sigma) * transpose(V), with orthogonal
    U and V. A pair of columns of U and V may have either sign. Where two singular values are
    equal, the derivative across their columns is left out: functions that do not depend on it,
    such as the rotation U * transpose(V), keep their exact derivative. U and V are rotations:
    the magnitude of sigma falls, and its last component has the sign of the determinant of A.
    With variables for the factors as further arguments, these are set instead.

    svd3(A: mat[3, 3, F]) -> (mat[3, 3, F], vec[3, F], mat[3, 3, F])
    svd3(A: mat[3, 3, F], U: mat[3, 3, F], sigma: vec[3, F], V: mat[3, 3, F]) -> None
    """
    ...

def tan(x: Any, /) -> Any:
    """tan(x): tangent of an angle in radians.

    tan(x: F) -> F
    """
    ...

def tanh(x: Any, /) -> Any:
    """tanh(x): hyperbolic tangent.

    tanh(x: F) -> F
    """
    ...

def tid(*args: Any, **named: Any) -> Any:
    """tid(): the thread's first coordinate in the launch grid; up to four names on the left take
    as many coordinates. Along an axis that the grid does not have, it is 0."""
    ...

def tile(*args: Any, **named: Any) -> Any:
    """tile(value, preserve_type=False): a tile of the values that the threads of a block have. On
    the CPU a block has one thread, and a tile one value, which `t[0]` gives. Of vectors and
    matrices with preserve_type=True."""
    ...

def tile_max(*args: Any, **named: Any) -> Any:
    """tile_max(t): a tile of one value, the greatest of a tile's."""
    ...

def tile_min(*args: Any, **named: Any) -> Any:
    """tile_min(t): a tile of one value, the least of a tile's."""
    ...

def tile_reduce(*args: Any, **named: Any) -> Any:
    """tile_reduce(f, t): a tile of one value, that of all threads of the block by a function of
    two values."""
    ...

def tile_sum(*args: Any, **named: Any) -> Any:
    """tile_sum(t): a tile of one value, the sum of a tile's."""
    ...

def trace(a: Any, /) -> Any:
    """trace(a): the sum of the diagonal.

    trace(a: mat[N, N, T]) -> T
    """
    ...

def transform_compose(p: Any, q: Any, s: Any, /) -> Any:
    """transform_compose(p, q, s): the 4x4 matrix that scales by s, turns by q and moves by p, in
    this order.

    transform_compose(p: vec[3, F], q: quat[F], s: vec[3, F]) -> mat[4, 4, F]
    """
    ...

def transform_decompose(m: Any, /) -> Any:
    """transform_decompose(m): translation, rotation and scales of a 4x4 matrix made from these;
    scales are positive.

    transform_decompose(m: mat[4, 4, F]) -> (vec[3, F], quat[F], vec[3, F])
    """
    ...

def transform_from_matrix(m: Any, /) -> Any:
    """transform_from_matrix(m): the transform of a 4x4 matrix without scaling.

    transform_from_matrix(m: mat[4, 4, F]) -> transform[F]
    """
    ...

def transform_get_rotation(t: Any, /) -> Any:
    """transform_get_rotation(t): t.q.

    transform_get_rotation(t: transform[F]) -> quat[F]
    """
    ...

def transform_get_translation(t: Any, /) -> Any:
    """transform_get_translation(t): t.p.

    transform_get_translation(t: transform[F]) -> vec[3, F]
    """
    ...

def transform_identity(*args: Any, **named: Any) -> Any:
    """transform_identity(dtype=float): no translation and no rotation."""
    ...

def transform_inverse(t: Any, /) -> Any:
    """transform_inverse(t): the motion back; the rotation must have length 1.

    transform_inverse(t: transform[F]) -> transform[F]
    """
    ...

def transform_multiply(a: Any, b: Any, /) -> Any:
    """transform_multiply(a, b): the motion b, followed by the motion a.

    transform_multiply(a: transform[F], b: transform[F]) -> transform[F]
    """
    ...

def transform_point(*args: Any, **named: Any) -> Any:
    """transform_point(t, x): the position x moved by t.
    transform_point(m, x): the first three components of m * (x, 1).

    transform_point(t: transform[F], x: vec[3, F]) -> vec[3, F]
    transform_point(m: mat[4, 4, F], x: vec[3, F]) -> vec[3, F]
    """
    ...

def transform_set_rotation(t: Any, q: Any, /) -> Any:
    """transform_set_rotation(t, q): changes the rotation of the variable t.

    transform_set_rotation(t: transform[F], q: quat[F]) -> None
    """
    ...

def transform_set_translation(t: Any, p: Any, /) -> Any:
    """transform_set_translation(t, p): changes the translation of the variable t.

    transform_set_translation(t: transform[F], p: vec[3, F]) -> None
    """
    ...

def transform_to_matrix(t: Any, /) -> Any:
    """transform_to_matrix(t): the 4x4 matrix of the motion t.

    transform_to_matrix(t: transform[F]) -> mat[4, 4, F]
    """
    ...

def transform_twist(t: Any, x: Any, /) -> Any:
    """transform_twist(t, x): the twist (w, v) as seen from the frame that t leads to.

    transform_twist(t: transform[F], x: vec[6, F]) -> vec[6, F]
    """
    ...

def transform_vector(*args: Any, **named: Any) -> Any:
    """transform_vector(t, v): the direction v turned by t.
    transform_vector(m, v): the first three components of m * (v, 0).

    transform_vector(t: transform[F], v: vec[3, F]) -> vec[3, F]
    transform_vector(m: mat[4, 4, F], v: vec[3, F]) -> vec[3, F]
    """
    ...

def transform_wrench(t: Any, x: Any, /) -> Any:
    """transform_wrench(t, x): the wrench (torque, force) as seen from the frame that t leads to.

    transform_wrench(t: transform[F], x: vec[6, F]) -> vec[6, F]
    """
    ...

def transformation(*args: Any, **named: Any) -> Any:
    """transformation(p, q, dtype=t): a transform of a translation and a rotation (the identity
    where left out), or of 7 numbers, or zero."""
    ...

def transpose(a: Any, /) -> Any:
    """transpose(a): rows become columns.

    transpose(a: mat[N, M, T]) -> mat[M, N, T]
    """
    ...

def trunc(x: Any, /) -> Any:
    """trunc(x): x without the part after the point.

    trunc(x: F) -> F
    """
    ...

def unot(a: Any, /) -> Any:
    """unot(a): true where `a` is false.

    unot(a: bool) -> bool
    """
    ...

def untile(*args: Any, **named: Any) -> Any:
    """untile(t): the thread's own value of a tile."""
    ...

def vector(*args: Any, **named: Any) -> Any:
    """vector(x, y, ..., length=n, dtype=t): a vector of its arguments, or of one number repeated,
    or of zeros."""
    ...

def velocity_at_point(s: Any, r: Any, /) -> Any:
    """velocity_at_point(s, r): the velocity of the point at r of a body with twist s.

    velocity_at_point(s: vec[6, F], r: vec[3, F]) -> vec[3, F]
    """
    ...

def where(cond: Any, a: Any, b: Any, /) -> Any:
    """where(cond, a, b): a where the condition holds, else b; both are evaluated.

    where(cond: bool | I, a: X, b: X) -> X
    """
    ...

"""Random numbers: a hash of 32 bits, and samples of distributions and shapes made from it.

The generator is "pcg" of M. Jarzynski and M. Olano, "Hash Functions for GPU Rendering", Journal
of Computer Graphics Techniques 9(3), 2020, after M. E. O'Neill's PCG-RXS-M-XS of 32 bits. Integer
arithmetic gives the same sequence everywhere. A call draws by hashing the state, which becomes
the new state; in a kernel the variable that is passed is set to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.builtins import language as wp
from engine.builtins.composite import composite, helper
from engine.ir.ops import Domain
from engine.lang.names import vec2, vec3
from engine.lang.types import FLOAT32, INT32, UINT32, ArrayType, Type
from engine.lang.values import float32, float64, int32, uint32

_TWO_PI = 6.283185307179586
_UNIT = 2.0**-24
_STATE = (0.0, 4294967295.0)
_ADVANCES = " In a kernel, the variable `state` is set to the next state."


def _types(*wanted: Type) -> Callable[[Sequence[Type]], bool]:
    return lambda types: tuple(types) == wanted


def _seeds(count: int) -> Callable[[Sequence[Type]], bool]:
    return lambda types: len(types) == count and all(t in (INT32, UINT32) for t in types)


def _draws(doc: str, *more: Type, **options: Any) -> Callable[[Any], Any]:
    """A function of a state and values of these types."""
    intervals = options.pop("intervals", ())
    domain = Domain((_STATE, *intervals))
    accepts = _types(UINT32, *more)
    return composite(doc + _ADVANCES, accepts, updates=(0,), domain=domain, **options)


@helper
def pcg(n: Any) -> Any:
    """The hash of an unsigned integer."""
    state = n * 747796405 + 2891336453
    word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737
    return (word >> 22) ^ word


_INIT = (
    "rand_init(seed, offset=none): the first state of a sequence of random numbers, a uint32. The "
    "offset (the thread's index, say) gives each thread a sequence of its own."
)


@composite(_INIT, _seeds(1))
def rand_init(seed: Any) -> Any:
    return pcg(uint32(seed))


@composite(_INIT, _seeds(2), user="rand_init")
def rand_init_offset(seed: Any, offset: Any) -> Any:
    return pcg(uint32(seed) + pcg(uint32(offset)))


_RANDI = (
    "randi(state), randi(state, low, high): a random int32, of all or from low up to high - 1 "
    "(low, where that leaves none)."
)
_RANDU = (
    "randu(state), randu(state, low, high): a random uint32, of all or from low up to high - 1 "
    "(low, where that leaves none)."
)
_RANDF = (
    "randf(state), randf(state, low, high): a random float32, at least 0 and less than 1, a "
    "multiple of 2**-24; or this scaled to low and high."
)


@_draws(_RANDI)
def randi(state: Any) -> Any:
    drawn = pcg(state)
    return int32(drawn), drawn


@_draws(_RANDI, INT32, INT32, user="randi", intervals=((-9.0, 0.0), (1.0, 9.0)))
def randi_between(state: Any, low: Any, high: Any) -> Any:
    drawn = pcg(state)
    return int32(drawn % uint32(high - low)) + low, drawn


@_draws(_RANDU)
def randu(state: Any) -> Any:
    drawn = pcg(state)
    return drawn, drawn


@_draws(_RANDU, UINT32, UINT32, user="randu", intervals=((0.0, 5.0), (6.0, 9.0)))
def randu_between(state: Any, low: Any, high: Any) -> Any:
    drawn = pcg(state)
    return drawn % (high - low) + low, drawn


@_draws(_RANDF)
def randf(state: Any) -> Any:
    drawn = pcg(state)
    return float32(drawn >> 8) * _UNIT, drawn


@_draws(_RANDF, FLOAT32, FLOAT32, user="randf", intervals=((-2.0, 2.0),) * 2)
def randf_between(state: Any, low: Any, high: Any) -> Any:
    s = state
    unit = wp.randf(s)
    return (high - low) * unit + low, s


@_draws(
    "randn(state): a random number of the normal distribution with mean 0 and variance 1, by the "
    "method of G. E. P. Box and M. E. Muller (1958) from two draws."
)
def randn(state: Any) -> Any:
    s = state
    size = wp.sqrt(-2.0 * wp.log(wp.randf(s) + _UNIT))
    return size * wp.cos(_TWO_PI * wp.randf(s)), s


# ---- distributions


@helper
def log_factorial(k: Any) -> Any:
    """log(k!) of a float64 that is a whole number, by Stirling's series."""
    x = k + 1.0
    product = float64(1.0)
    while x < 16.0:
        product *= x
        x += 1.0
    square = x * x
    rest = (1.0 / 1260.0 - 1.0 / (1680.0 * square)) / square
    series = (1.0 / 12.0 - (1.0 / 360.0 - rest) / square) / x
    return (x - 0.5) * wp.log(x) - x + 0.9189385332046727 + series - wp.log(product)


@_draws(
    "poisson(state, lam): a random uint32 of the Poisson distribution of mean lam, up to 2**32. "
    "Below 10 by D. E. Knuth's product of uniform numbers, from there on by W. Hoermann, "
    '"The transformed rejection method for generating Poisson random variables" (1993). 0 for '
    "lam <= 0 and NaN, which draw nothing.",
    FLOAT32,
    intervals=((0.1, 40.0),),
)
def poisson(state: Any, lam: Any) -> Any:
    # In double precision, so that the last digits of log and exp, which differ between
    # platforms, do not decide.
    s = state
    if not lam > 0.0:
        return uint32(0), s
    mean = wp.min(float64(lam), float64(4294967295.0))
    if mean < 10.0:
        limit = wp.exp(-mean)
        product = float64(wp.randf(s))
        count = uint32(0)
        while product > limit:
            product *= float64(wp.randf(s))
            count += uint32(1)
        return count, s
    b = 0.931 + 2.53 * wp.sqrt(mean)
    a = -0.059 + 0.02483 * b
    scale = wp.log(1.1239 + 1.1328 / (b - 3.4))
    ratio = 0.9277 - 3.6224 / (b - 2.0)
    log_mean = wp.log(mean)
    while True:
        u = float64(wp.randf(s)) - 0.5
        v = float64(wp.randf(s))
        rest = 0.5 - wp.abs(u)
        k = wp.floor((2.0 * a / rest + b) * u + mean + 0.43)
        if rest >= 0.07 and v <= ratio:
            return uint32(k), s
        if k >= 0.0 and (rest >= 0.013 or v <= rest):
            likely = k * log_mean - mean - log_factorial(k)
            if wp.log(v) + scale - wp.log(a / (rest * rest) + b) <= likely:
                return uint32(k), s


@_draws(
    "sample_cdf(state, cdf): a random index into an array of cumulated probabilities that ends "
    "with 1: that of the first which is not less than randf(state).",
    ArrayType(FLOAT32, 1),
)
def sample_cdf(state: Any, cdf: Any) -> Any:
    s = state
    return wp.lower_bound(cdf, wp.randf(s)), s


# ---- shapes


@_draws(
    "sample_triangle(state): a random point of a triangle as two barycentric coordinates; the "
    "third is 1 minus both."
)
def sample_triangle(state: Any) -> Any:
    s = state
    root = wp.sqrt(wp.randf(s))
    return vec2(1.0 - root, wp.randf(s) * root), s


@_draws("sample_unit_ring(state): a random point of the circle with radius 1.")
def sample_unit_ring(state: Any) -> Any:
    s = state
    angle = _TWO_PI * wp.randf(s)
    return vec2(wp.cos(angle), wp.sin(angle)), s


@_draws("sample_unit_disk(state): a random point inside the circle with radius 1.")
def sample_unit_disk(state: Any) -> Any:
    s = state
    radius = wp.sqrt(wp.randf(s))
    angle = _TWO_PI * wp.randf(s)
    return vec2(radius * wp.cos(angle), radius * wp.sin(angle)), s


@_draws("sample_unit_sphere_surface(state): a random point of the sphere with radius 1.")
def sample_unit_sphere_surface(state: Any) -> Any:
    s = state
    u = wp.randf(s)
    angle = _TWO_PI * wp.randf(s)
    radius = 2.0 * wp.sqrt(u * (1.0 - u))
    return vec3(radius * wp.cos(angle), radius * wp.sin(angle), 1.0 - 2.0 * u), s


@_draws("sample_unit_sphere(state): a random point inside the sphere with radius 1.")
def sample_unit_sphere(state: Any) -> Any:
    s = state
    point = wp.sample_unit_sphere_surface(s)
    return point * wp.cbrt(wp.randf(s)), s


@_draws(
    "sample_unit_hemisphere_surface(state): a random point of the sphere with radius 1, z >= 0."
)
def sample_unit_hemisphere_surface(state: Any) -> Any:
    s = state
    u = wp.randf(s)
    angle = _TWO_PI * wp.randf(s)
    radius = wp.sqrt(u * (2.0 - u))
    return vec3(radius * wp.cos(angle), radius * wp.sin(angle), 1.0 - u), s


@_draws("sample_unit_hemisphere(state): a random point inside the sphere with radius 1, z >= 0.")
def sample_unit_hemisphere(state: Any) -> Any:
    s = state
    point = wp.sample_unit_hemisphere_surface(s)
    return point * wp.cbrt(wp.randf(s)), s


@_draws("sample_unit_square(state): a random point of the square with side 1 around the origin.")
def sample_unit_square(state: Any) -> Any:
    s = state
    x = wp.randf(s) - 0.5
    return vec2(x, wp.randf(s) - 0.5), s


@_draws("sample_unit_cube(state): a random point of the cube with side 1 around the origin.")
def sample_unit_cube(state: Any) -> Any:
    s = state
    x = wp.randf(s) - 0.5
    y = wp.randf(s) - 0.5
    return vec3(x, y, wp.randf(s) - 0.5), s

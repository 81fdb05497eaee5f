"""Gradient noise on a lattice, after K. Perlin, and fields without divergence made from it.

K. Perlin, "An Image Synthesizer" (1985), with the interpolation of "Improving Noise" (2002), whose
second derivative is continuous; R. Bridson et al., "Curl-Noise for Procedural Fluid Flow" (2007).
The vector at a lattice point is random, of length 1: a sample of a square or cube from a state that
is the point's hash, after M. Teschner et al., "Optimized Spatial Hashing" (2003), with the numbers
that give the fields that Warp gives. The functions below give the noise and its gradient together;
what is not used is removed by the compiler, and derivatives of both are those of the code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.builtins import infer as i
from engine.builtins import language as wp
from engine.builtins.composite import composite, helper
from engine.ir.ops import Domain
from engine.lang.types import INT32, UINT32, Type, VectorType, scalar_of
from engine.lang.values import int64, uint32

_STATE = (0.0, 4294967295.0)
_LINE = (-3.0, 3.0)
_X, _Y, _Z, _T = 73856093, 19349663, 53471161, 10000019  # of the axes, in keys of lattice points
_NEXT = (10019689, 13112221)  # offsets of the second and third field of a potential


def _vector(t: Type, *lengths: int) -> bool:
    return isinstance(t, VectorType) and i.float_vector(t) and t.length in lengths


def _at(*lengths: int, more: int = 0) -> Callable[[Sequence[Type]], bool]:
    """A state, a point with so many components (0: a number) and `more` whole numbers."""

    def accepts(types: Sequence[Type]) -> bool:
        if len(types) != 2 + more or types[0] != UINT32 or any(t != INT32 for t in types[2:]):
            return False
        return i.floating(types[1]) if 0 in lengths else _vector(types[1], *lengths)

    return accepts


# ---- the lattice


@helper
def lattice_vector(key: Any, like: Any) -> Any:
    """The vector of a key, of length 1."""
    s, v = key, type(like)()
    for k in range(len(like)):
        v[k] = like.dtype(wp.randf(s) - 0.5)
    return wp.normalize(v)


@helper
def corner(key: Any, d: Any) -> Any:
    """The linear function of one lattice point: value at the offset d from it, and gradient."""
    g = lattice_vector(key, d)
    return wp.dot(g, d), g


@helper
def blend(v: Any, g: Any, w: Any, h: Any, t: Any, axis: Any) -> Any:
    """From the function (v, g) at t = 0 to (w, h) at t = 1, t counted along the axis."""
    fade = t * t * t * (t * (t * 6.0 - 15.0) + 10.0)
    slope = 30.0 * t * t * (t * (t - 2.0) + 1.0)
    return wp.lerp(v, w, fade), wp.lerp(g, h, fade) + axis * (slope * (w - v))


@helper
def plane(low: Any, high: Any, x: Any, x1: Any, d: Any) -> Any:
    """Along the two first axes. low, high: keys of both sides of the second. d may have more."""
    e0, e1 = type(d)(), type(d)()
    e0[0] = 1.0
    e1[1] = 1.0
    left, right = x * _X, x1 * _X
    v00, g00 = corner(left ^ low, d)
    v10, g10 = corner(right ^ low, d - e0)
    v01, g01 = corner(left ^ high, d - e1)
    v11, g11 = corner(right ^ high, d - e0 - e1)
    v0, g0 = blend(v00, g00, v10, g10, d[0], e0)
    v1, g1 = blend(v01, g01, v11, g11, d[0], e0)
    return blend(v0, g0, v1, g1, d[1], e1)


@helper
def volume(low: Any, high: Any, x: Any, x1: Any, y: Any, y1: Any, d: Any) -> Any:
    """Along the three first axes. low, high: keys of both sides of the third."""
    e = type(d)()
    e[2] = 1.0
    near, far = y * _Y, y1 * _Y
    v0, g0 = plane(near ^ low, far ^ low, x, x1, d)
    v1, g1 = plane(near ^ high, far ^ high, x, x1, d - e)
    return blend(v0, g0, v1, g1, d[2], e)


@helper
def hypervolume(
    low: Any, high: Any, x: Any, x1: Any, y: Any, y1: Any, z: Any, z1: Any, d: Any
) -> Any:
    """Along all four axes. low, high: keys of both sides of the last."""
    e = type(d)()
    e[3] = 1.0
    below, above = z * _Z, z1 * _Z
    v0, g0 = volume(below ^ low, above ^ low, x, x1, y, y1, d)
    v1, g1 = volume(below ^ high, above ^ high, x, x1, y, y1, d - e)
    return blend(v0, g0, v1, g1, d[3], e)


@helper
def cell(x: Any, period: Any) -> Any:
    """The lattice coordinates on both sides of x, and the way from the first; period 0: none."""
    below = wp.floor(x)
    n = int64(below)
    m = n + int64(1)
    p = int64(period)
    # Division by 0 gives 0.
    n -= wp.floordiv(n, p) * p
    m -= wp.floordiv(m, p) * p
    return uint32(n), uint32(m), x - below


# ---- noise of a point, its gradient, and the periodic forms

_NOISE = (
    "noise(state, p): smooth noise at a point p, a number or a vector of 2 to 4 components: 0 at "
    "whole coordinates, between -1 and 1, its features about 1 wide. The state, which does not "
    "change, chooses the field."
)
_PNOISE = (
    "pnoise(state, p, px, ...): noise that repeats itself after px, ... whole units along each "
    "axis; a period below 1 counts as none."
)


@composite(_NOISE, _at(0), domain=Domain((_STATE, _LINE)))
def noise(state: Any, p: Any) -> Any:
    return wp.pnoise(state, p, 0)


@composite(_NOISE, _at(2), user="noise", domain=Domain((_STATE, _LINE)))
def noise_2(state: Any, p: Any) -> Any:
    return wp.pnoise(state, p, 0, 0)


@composite(_NOISE, _at(3), user="noise", domain=Domain((_STATE, _LINE)))
def noise_3(state: Any, p: Any) -> Any:
    return wp.pnoise(state, p, 0, 0, 0)


@composite(_NOISE, _at(4), user="noise", domain=Domain((_STATE, _LINE)))
def noise_4(state: Any, p: Any) -> Any:
    return wp.pnoise(state, p, 0, 0, 0, 0)


def _periodic(n: int) -> Domain:
    return Domain((_STATE, _LINE, *((2.0, 5.0),) * max(1, n)))


@composite(_PNOISE, _at(0, more=1), domain=_periodic(1))
def pnoise(state: Any, p: Any, px: Any) -> Any:
    n, m, d = cell(p, wp.max(px, 0))
    here, there = n * _X + state, m * _X + state
    low = type(p)(2.0 * wp.randf(here) - 1.0)
    high = type(p)(2.0 * wp.randf(there) - 1.0)
    fade = d * d * d * (d * (d * 6.0 - 15.0) + 10.0)
    return wp.lerp(low * d, high * (d - 1.0), fade)


@helper
def field_2(state: Any, p: Any, px: Any, py: Any) -> Any:
    x, x1, dx = cell(p[0], wp.max(px, 0))
    y, y1, dy = cell(p[1], wp.max(py, 0))
    return plane(y * _Y + state, y1 * _Y + state, x, x1, type(p)(dx, dy))


@helper
def field_3(state: Any, p: Any, px: Any, py: Any, pz: Any) -> Any:
    x, x1, dx = cell(p[0], wp.max(px, 0))
    y, y1, dy = cell(p[1], wp.max(py, 0))
    z, z1, dz = cell(p[2], wp.max(pz, 0))
    return volume(z * _Z + state, z1 * _Z + state, x, x1, y, y1, type(p)(dx, dy, dz))


@helper
def field_4(state: Any, p: Any, px: Any, py: Any, pz: Any, pt: Any) -> Any:
    x, x1, dx = cell(p[0], wp.max(px, 0))
    y, y1, dy = cell(p[1], wp.max(py, 0))
    z, z1, dz = cell(p[2], wp.max(pz, 0))
    t, t1, dt = cell(p[3], wp.max(pt, 0))
    d = type(p)(dx, dy, dz, dt)
    return hypervolume(t * _T + state, t1 * _T + state, x, x1, y, y1, z, z1, d)


@composite(_PNOISE, _at(2, more=2), user="pnoise", domain=_periodic(2))
def pnoise_2(state: Any, p: Any, px: Any, py: Any) -> Any:
    value, _gradient = field_2(state, p, px, py)
    return value


@composite(_PNOISE, _at(3, more=3), user="pnoise", domain=_periodic(3))
def pnoise_3(state: Any, p: Any, px: Any, py: Any, pz: Any) -> Any:
    value, _gradient = field_3(state, p, px, py, pz)
    return value


@composite(_PNOISE, _at(4, more=4), user="pnoise", domain=_periodic(4))
def pnoise_4(state: Any, p: Any, px: Any, py: Any, pz: Any, pt: Any) -> Any:
    value, _gradient = field_4(state, p, px, py, pz, pt)
    return value


# ---- curl noise


def _curl_types(length: int) -> Callable[[Sequence[Type]], bool]:
    def accepts(t: Sequence[Type]) -> bool:
        fits = len(t) == 5 and t[0] == UINT32 and _vector(t[1], length)
        return fits and t[2] in (UINT32, INT32) and t[3] == t[4] == scalar_of(t[1])

    return accepts


_CURL = (
    "curlnoise(state, p, octaves=1, lacunarity=2.0, gain=0.5): a smooth vector field without "
    "divergence: the curl of noise at a point p of 2 or 3 components, or of 3 and the time. It is "
    "a sum of octaves with the frequencies lacunarity**k and the weights gain**k."
)
_CURL_DOMAIN = Domain((_STATE, _LINE, (1.0, 3.0), (1.5, 2.5), (0.3, 0.8)))


@composite(_CURL, _curl_types(2), domain=_CURL_DOMAIN)
def curlnoise(state: Any, p: Any, octaves: Any = 1, lacunarity: Any = 2.0, gain: Any = 0.5) -> Any:
    total = type(p)()
    frequency, weight = p.dtype(1.0), p.dtype(1.0)
    for _ in range(int(octaves)):
        _value, g = field_2(state, p * frequency, 0, 0)
        total += type(p)(-g[1], g[0]) * weight
        frequency *= lacunarity
        weight *= gain
    return total


@composite(_CURL, _curl_types(3), user="curlnoise", domain=_CURL_DOMAIN)
def curlnoise_3(
    state: Any, p: Any, octaves: Any = 1, lacunarity: Any = 2.0, gain: Any = 0.5
) -> Any:
    total = type(p)()
    frequency, weight, s = p.dtype(1.0), p.dtype(1.0), state
    for _ in range(int(octaves)):
        for k in range(3):
            # One component of the potential: its gradient goes round to the two others.
            _value, g = field_3(s, p * frequency, 0, 0, 0)
            total[(k + 1) % 3] += g[(k + 2) % 3] * weight
            total[(k + 2) % 3] -= g[(k + 1) % 3] * weight
            if k < 2:
                s = wp.rand_init(s, _NEXT[k])
        frequency *= lacunarity
        weight *= gain
    return total


@composite(_CURL, _curl_types(4), user="curlnoise", domain=_CURL_DOMAIN)
def curlnoise_4(
    state: Any, p: Any, octaves: Any = 1, lacunarity: Any = 2.0, gain: Any = 0.5
) -> Any:
    total = type(wp._part_vec3(p, 0))()
    frequency, weight, s = p.dtype(1.0), p.dtype(1.0), state
    for _ in range(int(octaves)):
        for k in range(3):
            _value, g = field_4(s, p * frequency, 0, 0, 0, 0)
            total[(k + 1) % 3] += g[(k + 2) % 3] * weight
            total[(k + 2) % 3] -= g[(k + 1) % 3] * weight
            if k < 2:
                s = wp.rand_init(s, _NEXT[k])
        frequency *= lacunarity
        weight *= gain
    return total

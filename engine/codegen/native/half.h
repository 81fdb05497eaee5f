// 16-bit floats (IEEE binary16): stored as such, computed with as float, rounded to the
// nearest, ties to even, after every operation. A type of its own, since compilers differ in
// what they offer, and in whether they round intermediate results.
#pragma once
#include "base.h"

namespace eng {

// Bits of the half nearest to x. One rounding, for float too: its values are doubles.
ENG_INLINE uint16_t half_bits(double x) {
    uint64_t u;
    ENG_LIB(memcpy)(&u, &x, 8);
    const uint16_t sign = uint16_t(u >> 48 & 0x8000);
    u &= ~(uint64_t(1) << 63);
    if (u > 0x7ff0000000000000) return uint16_t(sign | 0x7e00);   // NaN
    if (u >= 0x40effe0000000000) return uint16_t(sign | 0x7c00);  // 65520 and more: infinite
    if (u <= 0x3e60000000000000) return sign;                     // 2^-25 and less: zero
    const int exponent = int(u >> 52) - 1023;
    if (exponent < -14) {  // subnormal: a multiple of 2^-24
        const uint64_t m = (u & 0xfffffffffffff) | uint64_t(1) << 52;
        const int shift = 28 - exponent;
        const uint64_t up = (uint64_t(1) << (shift - 1)) - 1 + (m >> shift & 1);
        return uint16_t(sign | (m + up) >> shift);
    }
    u -= uint64_t(1023 - 15) << 52;
    u += 0x1ffffffffff + (u >> 42 & 1);
    return uint16_t(sign | u >> 42);
}

ENG_INLINE float half_value(uint16_t h) {
#if defined(ENG_HARD_HALF)
    return hard_half_value(h);
#else
    const uint32_t sign = uint32_t(h & 0x8000) << 16, rest = h & 0x7fff;
    uint32_t u = sign | (rest << 13) + (uint32_t(127 - 15) << 23);
    if (rest >= 0x7c00) u = sign | 0x7f800000 | rest << 13;  // infinite or NaN
    float out;
    ENG_LIB(memcpy)(&out, &u, 4);
    if (rest < 0x400) out = (h & 0x8000 ? -0x1p-24f : 0x1p-24f) * float(rest);  // subnormal
    return out;
#endif
}

ENG_INLINE uint16_t half_bits(float x) {
#if defined(ENG_HARD_HALF)
    return hard_half_bits(x);
#else
    return half_bits(double(x));
#endif
}

struct half_t {
    uint16_t bits;
    half_t() = default;
    ENG_MEMBER explicit half_t(float x) : bits(half_bits(x)) {}
    ENG_MEMBER explicit half_t(double x) : bits(half_bits(x)) {}
    template <class I> ENG_MEMBER explicit half_t(I x) : bits(half_bits(float(x))) {}
    ENG_MEMBER explicit operator float() const { return half_value(bits); }
    ENG_MEMBER explicit operator double() const { return double(half_value(bits)); }

    // From its bits, at compile time: for literals.
    struct raw_t {};
    ENG_MEMBER constexpr half_t(raw_t, uint16_t b) : bits(b) {}
};
ENG_INLINE constexpr half_t half(uint16_t bits) { return half_t(half_t::raw_t{}, bits); }

template <> constexpr bool is_float<half_t> = true;
template <> constexpr bool is_signed<half_t> = true;
template <> ENG_MEMBER constexpr half_t infinity<half_t>() { return half(0x7c00); }
template <> ENG_MEMBER constexpr half_t quiet_nan<half_t>() { return half(0x7e00); }

// Bits of the bfloat16 nearest to x: the upper half of a float.
ENG_INLINE uint16_t bfloat_bits(float x) {
    uint32_t u;
    ENG_LIB(memcpy)(&u, &x, 4);
    if (!(x == x)) return uint16_t(u >> 16 | 0x40);
    return uint16_t((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
ENG_INLINE float bfloat_value(uint16_t b) {
    const uint32_t u = uint32_t(b) << 16;
    float out;
    ENG_LIB(memcpy)(&out, &u, 4);
    return out;
}

// The other 16-bit float: the range of float, 8 bits of precision. Doubles are rounded to float
// first.
struct bfloat_t {
    uint16_t bits;
    bfloat_t() = default;
    ENG_MEMBER explicit bfloat_t(float x) : bits(bfloat_bits(x)) {}
    template <class I> ENG_MEMBER explicit bfloat_t(I x) : bits(bfloat_bits(float(x))) {}
    ENG_MEMBER explicit operator float() const { return bfloat_value(bits); }
    ENG_MEMBER explicit operator double() const { return double(bfloat_value(bits)); }

    struct raw_t {};
    ENG_MEMBER constexpr bfloat_t(raw_t, uint16_t b) : bits(b) {}
};
ENG_INLINE constexpr bfloat_t bfloat(uint16_t bits) { return bfloat_t(bfloat_t::raw_t{}, bits); }

template <> constexpr bool is_float<bfloat_t> = true;
template <> constexpr bool is_signed<bfloat_t> = true;
template <> ENG_MEMBER constexpr bfloat_t infinity<bfloat_t>() { return bfloat(0x7f80); }
template <> ENG_MEMBER constexpr bfloat_t quiet_nan<bfloat_t>() { return bfloat(0x7fc0); }

#define ENG_HALF(T, op) \
    ENG_INLINE T operator op(T a, T b) { return T(float(a) op float(b)); }
#define ENG_HALF_TEST(T, op) \
    ENG_INLINE bool operator op(T a, T b) { return float(a) op float(b); }
#define ENG_HALVES(T)      \
    ENG_HALF(T, +)         \
    ENG_HALF(T, -)         \
    ENG_HALF(T, *)         \
    ENG_HALF(T, /)         \
    ENG_HALF_TEST(T, ==)   \
    ENG_HALF_TEST(T, !=)   \
    ENG_HALF_TEST(T, <)    \
    ENG_HALF_TEST(T, <=)   \
    ENG_HALF_TEST(T, >)    \
    ENG_HALF_TEST(T, >=)
ENG_HALVES(half_t)
ENG_HALVES(bfloat_t)
#undef ENG_HALF
#undef ENG_HALF_TEST
#undef ENG_HALVES
ENG_INLINE half_t operator-(half_t x) { return half(uint16_t(x.bits ^ 0x8000)); }
ENG_INLINE bfloat_t operator-(bfloat_t x) { return bfloat(uint16_t(x.bits ^ 0x8000)); }

}  // namespace eng

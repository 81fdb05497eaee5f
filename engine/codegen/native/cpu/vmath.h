// Functions of float32 without branches, so that compilers make vectors of them, and that a lane of
// a vector, the rest of a loop and a single call give the same bits. Polynomials are minimax fits
// of our own (Remez's exchange) on the reduced ranges; the errors that tests hold are in
// docs/python.md. Where arithmetic is in float64, results are rounded once.
#pragma once
#include "scalar.h"

namespace eng {
namespace vm {

ENG_INLINE int32_t bits_of(float x) {
    int32_t r;
    ENG_LIB(memcpy)(&r, &x, sizeof(r));
    return r;
}
ENG_INLINE float float_of(int32_t x) {
    float r;
    ENG_LIB(memcpy)(&r, &x, sizeof(r));
    return r;
}
ENG_INLINE int64_t bits_of(double x) {
    int64_t r;
    ENG_LIB(memcpy)(&r, &x, sizeof(r));
    return r;
}
ENG_INLINE double double_of(int64_t x) {
    double r;
    ENG_LIB(memcpy)(&r, &x, sizeof(r));
    return r;
}

// a * b + c, by one operation with one rounding where processors have it.
#if (defined(__FMA__) || defined(__ARM_FEATURE_FMA)) && !defined(ENG_NO_FMA)
#define ENG_FMA
ENG_INLINE float madd(float a, float b, float c) { return ENG_LIB(fmaf)(a, b, c); }
ENG_INLINE double madd(double a, double b, double c) { return ENG_LIB(fma)(a, b, c); }
#else
ENG_INLINE float madd(float a, float b, float c) { return a * b + c; }
ENG_INLINE double madd(double a, double b, double c) { return a * b + c; }
#endif

// The following take numbers and, where compilers have them, vectors of numbers.
template <class V> struct ints { typedef decltype(V{} < V{}) type; };
template <> struct ints<float> { typedef int32_t type; };
template <> struct ints<double> { typedef int64_t type; };
template <class V> using ints_of = typename ints<V>::type;
template <class V> ENG_INLINE ints_of<V> bits_of(V x) { return (ints_of<V>)x; }
template <class V> ENG_INLINE V value_of(V, ints_of<V> n) { return (V)n; }
ENG_INLINE float value_of(float, int32_t n) { return float_of(n); }
ENG_INLINE double value_of(double, int64_t n) { return double_of(n); }
ENG_INLINE float first_of(float x) { return x; }
ENG_INLINE double first_of(double x) { return x; }
template <class V> ENG_INLINE auto first_of(V x) { return x[0]; }
template <class V> ENG_INLINE V all(double c) { return V{} + decltype(first_of(V{}))(c); }
template <class V> ENG_INLINE V madd(V a, V b, V c) {
    constexpr int n = int(sizeof(V) / sizeof(first_of(a)));
    V y{};
    for (int i = 0; i < n; ++i) {
        const auto p = a[i], q = b[i], r = c[i];
        y[i] = madd(p, q, r);
    }
    return y;
}

// c + x * (d + x * (...)).
template <class V> ENG_INLINE V poly(V, double c) { return all<V>(c); }
template <class V, class... D> ENG_INLINE V poly(V x, double c, D... d) {
    return madd(x, poly(x, d...), all<V>(c));
}

// Added and taken away again, they round to the nearest integer, which their lowest bits hold.
constexpr float ROUND = 12582912.0f;          // 1.5 * 2^23
constexpr double ROUND64 = 6755399441055744.0;  // 1.5 * 2^52
constexpr int32_t SIGN = int32_t(0x80000000u);

// Up to here, x - k * pi / 2 is right to its last bit but one.
constexpr float FAST = 48000.0f;

// sin(x + quarters * pi / 2). A sine and a cosine of one number have all but the end in common.
template <class V> ENG_INLINE V sine(V x, int32_t quarters) {
    const V t = madd(x, all<V>(0.6366197723675814), all<V>(ROUND));
    const V k = t - ROUND;
#if defined(ENG_FMA)  // by three parts of pi / 2; what the first one leaves is exact
    V r = madd(k, all<V>(-1.5707963705062866), x);
    r = madd(k, all<V>(4.371138828673793e-08), r);
    r = madd(k, all<V>(1.7151245100058819e-15), r);
    const V s = r * r;
    const V odd = madd(r * s, poly(s, -0.16666654f, 0.0083321314f, -0.0001951087f), r);
    const V even = madd(s, poly(s, -0.5f, 0.041666646f, -0.0013887306f, 2.4431241e-05f), all<V>(1.0));
#else  // by five parts, four of them of nine bits; `rest` is what rounding takes from r, and the last
    const V high = (x - k * 1.5703125f) - k * 0.00048351287841796875f;
    const V low = k * 3.1385570764541626e-07f, lower = k * 6.070877134334296e-11f;
    const V nearly = high - low, r = nearly - lower;
    const V rest = (((high - nearly) - low) + ((nearly - r) - lower)) - k * 6.223371969669989e-14f;
    const V s = r * r;
    const V c = 1.0f - 0.5f * s;
    const V q = (r * s) * poly(s, -0.16666654f, 0.0083321314f, -0.0001951087f);
    const V odd = r + (q + rest * c);
    const V even = c + ((s * s) * poly(s, 0.041666646f, -0.0013887306f, 2.4431241e-05f) -
                        rest * (r + q));
#endif
    const ints_of<V> n = bits_of(t) + quarters;
    const ints_of<V> y = (n & 1) != 0 ? bits_of(even) : bits_of(odd);
    return value_of(V{}, y ^ ((n << 30) & SIGN));
}
template <class V> ENG_INLINE V sin_fast(V x) {
    const V y = sine(x, 0);
    return x == 0.0f ? x : y;
}
template <class V> ENG_INLINE V cos_fast(V x) { return sine(x, 1); }

// The same by float64: two parts of pi / 2.
ENG_INLINE float tan_fast(float x) {
    const double d = x;
    const double t = madd(d, 0.6366197723675814, ROUND64);
    const double k = t - ROUND64;
    const double r = madd(k, -6.077100506506192e-11, madd(k, -1.5707963267341256, d));
    const double s = r * r;
    const double sn = madd(r * s, poly(s, -0.16666666628756252, 0.008333328508708306,
                                       -0.00019839120034063792, 2.7165908469967426e-06), r);
    const double cs = poly(s, 1.0, -0.49999999999284583, 0.04166666653392778,
                           -0.0013888879880362753, 2.479882269874252e-05, -2.716585791676997e-07);
    const bool flip = (bits_of(t) & 1) != 0;
    const double num = flip ? -cs : sn, den = flip ? sn : cs;
    const float y = float(num / den);
    return x == 0.0f ? x : y;
}

// The same for any argument; far from zero, the C library knows enough digits of pi.
ENG_INLINE bool is_near(float x) { return float_of(bits_of(x) & ~SIGN) <= FAST; }
ENG_INLINE float sin_any(float x) { return is_near(x) ? sin_fast(x) : ENG_LIB(sinf)(x); }
ENG_INLINE float cos_any(float x) { return is_near(x) ? cos_fast(x) : ENG_LIB(cosf)(x); }
ENG_INLINE float tan_any(float x) { return is_near(x) ? tan_fast(x) : ENG_LIB(tanf)(x); }

#if defined(ENG_SIMD)  // functions that also have forms for vectors: see trig.h
extern "C" {
__attribute__((simd("notinbranch"), const)) float eng_vm_sin(float x);
__attribute__((simd("notinbranch"), const)) float eng_vm_cos(float x);
__attribute__((simd("notinbranch"), const)) float eng_vm_tan(float x);
}
ENG_INLINE float sin(float x) { return eng_vm_sin(x); }
ENG_INLINE float cos(float x) { return eng_vm_cos(x); }
ENG_INLINE float tan(float x) { return eng_vm_tan(x); }
#else
ENG_INLINE float sin(float x) { return sin_any(x); }
ENG_INLINE float cos(float x) { return cos_any(x); }
ENG_INLINE float tan(float x) { return tan_any(x); }
#endif

ENG_INLINE float exp(float x) {
    const float floor = x < -104.5f ? -104.5f : x;
    const float c = x > 89.0f ? 89.0f : floor;
    const float t = madd(c, 1.442695f, ROUND);
    const float k = t - ROUND;
    const float r = madd(k, -3.1946183e-05f, madd(k, -0.693115234375f, c));
    const float p = poly(r, 0.5f, 0.16666512f, 0.041666187f, 0.0083695976f, 0.0013951713f);
#if defined(ENG_FMA)
    const float y = madd(madd(p, r, 1.0f), r, 1.0f);
#else
    const float y = 1.0f + (r * r * p + r);
#endif
    // By two powers of two, as exponents: 2^k itself may be too large for one, or too small.
    const int32_t n = int32_t(uint32_t(bits_of(t)) << 23), half = (n >> 1) & ~0x7fffff;
    const int32_t one = bits_of(1.0f);
    return y * float_of(half + one) * float_of(n - half + one);
}

ENG_INLINE float log(float x) {
    const bool small = x < 1.17549435e-38f;
    const float scaled = small ? x * 8388608.0f : x;
    const int32_t e = (bits_of(scaled) - 0x3f3504f3) >> 23;
    const float f = float_of(bits_of(scaled) - int32_t(uint32_t(e) << 23)) - 1.0f;
    const float k = float(e - (small ? 23 : 0));
    const float s = f * f;
    const float p = poly(f, 0.33333316f, -0.2500081f, 0.20002286f, -0.16624555f, 0.14181194f,
                         -0.13128747f, 0.12881632f, -0.07859609f);
    float y = madd(k, 3.1946183e-05f, (f * s) * p);
    y = madd(s, -0.5f, y);
    y = madd(k, 0.693115234375f, f + y);
    const float end = x == 0.0f ? -infinity<float>() : x < 0.0f ? quiet_nan<float>() : x;
    return ((x > 0.0f) & (x < infinity<float>())) ? y : end;
}

ENG_INLINE float tanh(float x) {
    const float s = x * x;
    const float small = madd(
        x * s, poly(s, -0.3333328f, 0.13331425f, -0.053737614f, 0.02063041f, -0.005693517f), x);
    const float a = float_of(bits_of(x) & ~SIGN);
    const float large = 1.0f - 2.0f / (vm::exp(2.0f * a) + 1.0f);
    const float signed_large = float_of(bits_of(large) | (bits_of(x) & SIGN));
    const float y = a < 0.625f ? small : signed_large;
    return x == 0.0f ? x : x == x ? y : x;
}

// ---- by float64

// log2 of a positive number that is not denormal and not infinite.
ENG_INLINE double log2_of(double x) {
    const int64_t b = bits_of(x);
    // Subtracted, the exponent of sqrt(1/2) makes the mantissa lie between it and sqrt(2).
    const int64_t high = b - 0x3fe6a09e667f3bcdll;
    // An exponent fits the lower half of a word that is shifted without sign.
    const int32_t e = int32_t(uint64_t(high) >> 52 << 20) >> 20;
    const double m = double_of(b - int64_t(uint64_t(int64_t(e)) << 52));
    const double s = (m - 1.0) / (m + 1.0), z = s * s;
    return madd(s, poly(z, 2.8853900817778397, 0.9617966941338816, 0.5770779359551524,
                        0.4122099392028321, 0.31987609768894604, 0.28334141938544277), double(e));
}

// 2^x for |x| < 1000.
ENG_INLINE double exp2_of(double x) {
    const double t = x + ROUND64;
    const double r = x - (t - ROUND64);
    const double y = poly(r, 1.0, 0.6931471805461509, 0.24022650695554923, 0.055504109407039356,
                          0.009618129219310885, 0.0013333450904691525, 0.00015403415541122065,
                          1.5310010572529323e-05, 1.3263484791176612e-06);
    return double_of(bits_of(y) + int64_t(uint64_t(bits_of(t)) << 52));
}

ENG_INLINE float logarithm(float x, double factor) {
    const bool ordinary = (x > 0.0f) & (x < infinity<float>());
    const float y = float(log2_of(ordinary ? x : 1.0f) * factor);
    const float end = x == 0.0f ? -infinity<float>() : x < 0.0f ? quiet_nan<float>() : x;
    return ordinary ? y : end;
}
ENG_INLINE float log2(float x) { return logarithm(x, 1.0); }
ENG_INLINE float log10(float x) { return logarithm(x, 0.30102999566398120); }

// By bits, where compilers would make branches of so many conditions. They are 0 or 1.
ENG_INLINE float pick(int32_t c, float a, float b) {
    return float_of((bits_of(a) & -c) | (bits_of(b) & (c - 1)));
}
ENG_INLINE double pick(int64_t c, double a, double b) {
    return double_of((bits_of(a) & -c) | (bits_of(b) & (c - 1)));
}

ENG_INLINE float pow(float x, float y) {
    const float a = float_of(bits_of(x) & ~SIGN);
    const double d = y;
    const int32_t zero = a == 0.0f, endless = !(a < infinity<float>()), usual = 1 - (zero | endless);
    double l = log2_of(double(pick(usual, a, 1.0f)));
    l = pick(int64_t(usual), l, pick(int64_t(zero), -infinity<double>(), double(a)));
    // 1^y and x^0 are 1, of NaN too; (-1)^inf is 1.
    const int32_t nan = y != y, one = (x == 1.0f) | (y == 0.0f) | ((a == 1.0f) & (1 - nan));
    double e = pick(int64_t(one), 0.0, l * d);
    const int32_t known = e == e;
    e = e > 200.0 ? 200.0 : e;
    e = e < -200.0 ? -200.0 : e;
    float r = float(exp2_of(pick(int64_t(known), e, 0.0)));
    r = pick(known, r, quiet_nan<float>());
    const float b = float_of(bits_of(y) & ~SIGN);
    const int32_t count = int32_t(b < 16777216.0f ? b : 0.0f);
    const int32_t whole = (b >= 16777216.0f) | (float(count) == b), odd = whole & count;
    const int32_t negative = int32_t(uint32_t(bits_of(x)) >> 31);
    r = float_of(bits_of(r) ^ int32_t(uint32_t(negative & odd) << 31));
    return pick(negative & usual & (1 - whole) & (1 - nan), quiet_nan<float>(), r);
}

// num / den >= 0 as an angle; both may be infinite, or zero.
ENG_INLINE double angle(double num, double den) {
    const bool steep = num > den * 2.414213562373095, middle = num > den * 0.4142135623730950;
    const double n = steep ? -den : middle ? num - den : num;
    const double d = steep ? num : middle ? num + den : den;
    const double base = steep ? 1.5707963267948966 : middle ? 0.7853981633974483 : 0.0;
    const double s = n / d, z = s * s;
    return madd(s, poly(z, 0.9999999999991848, -0.33333333272577137, 0.19999992565221394,
                        -0.14285366637782607, 0.11103079045651593, -0.08988936443960475,
                        0.06957265729618022, -0.037347032393156857), base);
}

ENG_INLINE float atan(float x) {
    const double a = float_of(bits_of(x) & ~SIGN);
    const float y = float(angle(a, 1.0));
    return x == 0.0f ? x : float_of(bits_of(y) | (bits_of(x) & SIGN));
}

ENG_INLINE float atan2(float y, float x) {
    double a = float_of(bits_of(y) & ~SIGN), b = float_of(bits_of(x) & ~SIGN);
    const bool both = (a == b) & ((a == 0.0) | (a == infinity<double>()));
    const bool zero = a == 0.0;  // of which the sign of x alone matters
    a = both ? (zero ? 0.0 : 1.0) : a;
    b = both ? 1.0 : b;
    double t = angle(a, b);
    t = bits_of(x) < 0 ? 3.141592653589793 - t : t;
    const float r = float(t);
    return ((x == x) & (y == y)) ? float_of(bits_of(r) | (bits_of(y) & SIGN)) : x + y;
}

// For |x| <= 1, or NaN.
ENG_INLINE float asin(float x) {
    const double a = float_of(bits_of(x) & ~SIGN);
    const float y = float(angle(a, ENG_LIB(sqrt)((1.0 - a) * (1.0 + a))));
    return x == 0.0f ? x : x == x ? float_of(bits_of(y) | (bits_of(x) & SIGN)) : x;
}
ENG_INLINE float acos(float x) {
    const double a = float_of(bits_of(x) & ~SIGN);
    const double t = angle(ENG_LIB(sqrt)((1.0 - a) * (1.0 + a)), a);
    const float y = float(x < 0.0f ? 3.141592653589793 - t : t);
    return x == x ? y : x;
}

ENG_INLINE float sinh(float x) {
    const double d = x, a = float_of(bits_of(x) & ~SIGN);
    const double e = exp2_of((a > 100.0 ? 100.0 : x == x ? a : 0.0) * 1.4426950408889634);
    const float large = float(0.5 * (e - 1.0 / e));
    const float small = float(d + d * d * d * 0.16666666666666666);
    const float y = float_of(bits_of(large) | (bits_of(x) & SIGN));
    return x == x ? a < 0.00390625 ? (x == 0.0f ? x : small) : y : x;
}
ENG_INLINE float cosh(float x) {
    const double a = float_of(bits_of(x) & ~SIGN);
    const double e = exp2_of((a > 100.0 ? 100.0 : x == x ? a : 0.0) * 1.4426950408889634);
    const float y = float(0.5 * (e + 1.0 / e));
    return x == x ? y : x;
}

ENG_INLINE float cbrt(float x) {
    const float a = float_of(bits_of(x) & ~SIGN);
    const bool usual = (a > 0.0f) & (a < infinity<float>());
    const float y = float(exp2_of(log2_of(usual ? a : 1.0f) * 0.3333333333333333));
    return usual ? float_of(bits_of(y) | (bits_of(x) & SIGN)) : x;
}

}  // namespace vm
}  // namespace eng

// Functions of which vectors have a form of their own: for one number, and for as many as a vector
// has. GCC takes the latter by the names that the vector function ABI gives them. Each function has
// a header, which kernels include that call it.
#pragma once
#include "math.h"

namespace eng {
namespace vm {

// Of threads that compute it beforehand: the fast way, noting what it is not for, or the other.
#if defined(ENG_PRECISE)
#define ENG_AHEAD(T, name, call) \
    template <bool near> ENG_INLINE T name##_ahead(T x, int32_t&) { return eng::name(x); }
#else
#define ENG_AHEAD(T, name, call)                                    \
    template <bool near> ENG_INLINE T name##_ahead(T x, int32_t& far) { \
        if constexpr (!near) return call##_any(x);                  \
        far |= !is_near(x);                                         \
        return call##_fast(x);                                      \
    }
#endif
ENG_AHEAD(float, sin, sin)
ENG_AHEAD(float, cos, cos)
ENG_AHEAD(double, sin, sin64)
ENG_AHEAD(double, cos, cos64)
#undef ENG_AHEAD

}  // namespace vm
}  // namespace eng

#if defined(ENG_SIMD)
namespace eng {
namespace vm {

#define ENG_VECTORS(T)                                      \
    typedef T T##_8 __attribute__((vector_size(8)));        \
    typedef T T##_16 __attribute__((vector_size(16)));      \
    typedef T T##_32 __attribute__((vector_size(32)));      \
    typedef T T##_64 __attribute__((vector_size(64)));
ENG_VECTORS(float)
ENG_VECTORS(double)
ENG_VECTORS(int64_t)
#undef ENG_VECTORS
template <int bytes> struct words;
template <> struct words<16> { typedef int64_t_16 type; };
template <> struct words<32> { typedef int64_t_32 type; };
template <> struct words<64> { typedef int64_t_64 type; };

// By float64, of which a vector holds fewer: lane by lane, of which compilers make vectors.
template <class V> ENG_INLINE V tan_fast(V x) {
    constexpr int n = int(sizeof(V) / sizeof(float));
    typedef V whole __attribute__((may_alias));
    alignas(V) float in[n], out[n];
    *(whole *)in = x;
    for (int i = 0; i < n; ++i) out[i] = tan_fast(in[i]);
    return *(whole *)out;
}

// Whether all numbers of a vector are near, of which `reach` is the largest.
template <class V> ENG_INLINE bool are_near(V x, V reach) {
    typedef typename words<int(sizeof(V))>::type W;
    const V positive = value_of(V{}, bits_of(x) & ~bits_of(-V{}));
    const W near = (W)(positive <= reach);
    int64_t all_of = -1;
    for (int i = 0; i < int(sizeof(V) / sizeof(int64_t)); ++i) all_of &= near[i];
    return all_of == -1;
}

#define ENG_LANES(T, V, name, reach)                                                         \
    static __attribute__((noinline, cold)) V name##_each(V x) {                              \
        for (int i = 0; i < int(sizeof(V) / sizeof(T)); ++i) {                               \
            const T one = x[i];                                                              \
            x[i] = name##_any(one);                                                          \
        }                                                                                    \
        return x;                                                                            \
    }                                                                                        \
    ENG_INLINE V name##_lanes(V x) {                                                         \
        const V y = name##_fast(x);                                                          \
        return __builtin_expect(are_near(x, all<V>(reach)), 1) ? y : name##_each(x);         \
    }                                                                                        \
    extern "C" T name##_one(T x) __asm__("eng_vm_" #name);                                   \
    extern "C" T name##_one(T x) { return name##_any(x); }

#define ENG_WIDEST(W, prefix, name)                                              \
    extern "C" W name##_##prefix(W x) __asm__("_ZGV" #prefix "v_eng_vm_" #name); \
    extern "C" __attribute__((noinline)) W name##_##prefix(W x) { return name##_lanes(x); }

// Fewer numbers than the widest vector W has are computed as a part of one.
#define ENG_VARIANT(V, W, whole, prefix, name)                                   \
    extern "C" V name##_##prefix(V x) __asm__("_ZGV" #prefix "v_eng_vm_" #name); \
    extern "C" V name##_##prefix(V x) {                                          \
        W w{};                                                                   \
        for (int i = 0; i < int(sizeof(V) / sizeof(x[0])); ++i) w[i] = x[i];     \
        w = name##_##whole(w);                                                   \
        for (int i = 0; i < int(sizeof(V) / sizeof(x[0])); ++i) x[i] = w[i];     \
        return x;                                                                \
    }

// All forms of a function. b, c, d, e: of vectors for SSE, AVX, AVX2 and AVX-512.
#if defined(__AVX512F__)
#define ENG_FORMS(T, name, reach, b, c, d, e)                                            \
    ENG_LANES(T, T##_64, name, reach) ENG_WIDEST(T##_64, e, name)                        \
    ENG_VARIANT(T##_16, T##_64, e, b, name) ENG_VARIANT(T##_32, T##_64, e, c, name)      \
    ENG_VARIANT(T##_32, T##_64, e, d, name)
#elif defined(__AVX__)
#define ENG_FORMS(T, name, reach, b, c, d, e)                                            \
    ENG_LANES(T, T##_32, name, reach) ENG_WIDEST(T##_32, d, name)                        \
    ENG_VARIANT(T##_16, T##_32, d, b, name) ENG_VARIANT(T##_32, T##_32, d, c, name)
#else
#define ENG_FORMS(T, name, reach, b, c, d, e) \
    ENG_LANES(T, T##_16, name, reach) ENG_WIDEST(T##_16, b, name)
#endif

#if defined(__aarch64__)
#define ENG_TRIG(name)                     \
    ENG_LANES(float, float_16, name, FAST) \
    ENG_WIDEST(float_16, nN4, name) ENG_VARIANT(float_8, float_16, nN4, nN2, name)
#define ENG_TRIG64(name) \
    ENG_LANES(double, double_16, name, FAST64) ENG_WIDEST(double_16, nN2, name)
#else
#define ENG_TRIG(name) ENG_FORMS(float, name, FAST, bN4, cN8, dN8, eN16)
#define ENG_TRIG64(name) ENG_FORMS(double, name, FAST64, bN2, cN4, dN4, eN8)
#endif

}  // namespace vm
}  // namespace eng
#else
#define ENG_TRIG(name)
#define ENG_TRIG64(name)
#endif

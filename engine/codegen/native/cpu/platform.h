// The CPU's compilers: qualifiers, integers, and what they offer without a header, where a
// standard one would cost compile time.
#pragma once
#include <stdint.h>

#define ENG_FN static inline
#if defined(ENG_LARGE)  // a long kernel: what is inlined, the compiler decides
#define ENG_INLINE static inline __attribute__((unused))
#define ENG_MEMBER inline
#else
#define ENG_INLINE static inline __attribute__((always_inline))
#define ENG_MEMBER inline __attribute__((always_inline))
#endif
#if defined(ENG_HUGE)  // one copy of what is long itself, however often it is called
#define ENG_HEAVY static __attribute__((noinline, unused))
#else
#define ENG_HEAVY ENG_INLINE
#endif
#define ENG_PIECE static __attribute__((noinline))
#define ENG_COLD static __attribute__((noinline, cold, unused))  // hardly ever called
#define ENG_ALONE static __attribute__((noinline))
#define ENG_ONLY __restrict__  // of a pointer: nothing else points there
#define ENG_EXPORT extern "C" __attribute__((visibility("default")))

// Before loops over components: their indices must become constants, or the value
// stays in memory.
#if defined(__clang__)
#define ENG_UNROLL _Pragma("clang loop unroll(full)")
#else
#define ENG_UNROLL _Pragma("GCC unroll 16")
#endif

// Whether the compiler takes forms for vectors of functions that it cannot inline.
#if defined(__GNUC__) && !defined(__clang__) && defined(__ELF__) && \
    (defined(__x86_64__) || defined(__aarch64__))
#define ENG_SIMD
#endif
// In a loop that is not worth the time that compilers take to vectorise it.
#define ENG_SCALAR __asm__ volatile("")

// Functions of the C library.
#define ENG_LIB(name) __builtin_##name
#define ENG_LIKELY(test) __builtin_expect(test, 1)

namespace eng {

template <class T> ENG_INLINE constexpr T infinity() { return T(__builtin_inf()); }
template <class T> ENG_INLINE constexpr T quiet_nan() { return T(__builtin_nan("")); }

#if defined(__F16C__) && !defined(ENG_SOFT_HALF)
#define ENG_HARD_HALF
ENG_INLINE float hard_half_value(uint16_t h) {
#if defined(__clang__) && __clang_major__ >= 22  // has no builtin for it any more
    _Float16 x;
    ENG_LIB(memcpy)(&x, &h, sizeof(x));
    return float(x);
#else
    typedef short v8hi __attribute__((vector_size(16)));
    return __builtin_ia32_vcvtph2ps(v8hi{short(h), 0, 0, 0, 0, 0, 0, 0})[0];
#endif
}
ENG_INLINE uint16_t hard_half_bits(float x) {
    typedef float v4sf __attribute__((vector_size(16)));
    return uint16_t(__builtin_ia32_vcvtps2ph(v4sf{x, 0, 0, 0}, 0)[0]);
}
#endif

}  // namespace eng

// Functions of which vectors have a form of their own: for one number, and for as many as a vector
// has. GCC takes the latter by the names that the vector function ABI gives them. Each function has
// a header, which kernels include that call it.
#pragma once
#include "math.h"

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
#undef ENG_VECTORS

#define ENG_LANES(T, V, name)                                                                \
    static __attribute__((noinline)) V name##_lanes(V x) {                                   \
        constexpr int n = int(sizeof(V) / sizeof(T));                                        \
        T in[n], out[n];                                                                     \
        int32_t far = 0;                                                                     \
        ENG_LIB(memcpy)(in, &x, sizeof(V));                                                  \
        for (int i = 0; i < n; ++i) out[i] = name##_fast(in[i]);                             \
        for (int i = 0; i < n; ++i) far |= int32_t(!is_near(in[i]));                         \
        if (__builtin_expect(far, 0)) {                                                      \
            for (int i = 0; i < n; ++i) out[i] = name##_any(in[i]);                          \
        }                                                                                    \
        ENG_LIB(memcpy)(&x, out, sizeof(V));                                                 \
        return x;                                                                            \
    }                                                                                        \
    extern "C" T name##_one(T x) __asm__("eng_vm_" #name);                                   \
    extern "C" T name##_one(T x) { return name##_any(x); }

// Fewer numbers than the widest vector W has are computed as a part of one.
#define ENG_VARIANT(V, W, prefix, name)                                          \
    extern "C" V name##_##prefix(V x) __asm__("_ZGV" #prefix "v_eng_vm_" #name); \
    extern "C" V name##_##prefix(V x) {                                          \
        W w{};                                                                   \
        ENG_LIB(memcpy)(&w, &x, sizeof(V));                                      \
        w = name##_lanes(w);                                                     \
        ENG_LIB(memcpy)(&x, &w, sizeof(V));                                      \
        return x;                                                                \
    }

#if defined(__aarch64__)
#define ENG_TRIG(name)                     \
    ENG_LANES(float, float_16, name)       \
    ENG_VARIANT(float_8, float_16, nN2, name) ENG_VARIANT(float_16, float_16, nN4, name)
#define ENG_TRIG64(name)                   \
    ENG_LANES(double, double_16, name)     \
    ENG_VARIANT(double_16, double_16, nN2, name)
#elif defined(__AVX512F__)
#define ENG_TRIG(name)                                                                    \
    ENG_LANES(float, float_64, name)                                                      \
    ENG_VARIANT(float_16, float_64, bN4, name) ENG_VARIANT(float_32, float_64, cN8, name) \
    ENG_VARIANT(float_32, float_64, dN8, name) ENG_VARIANT(float_64, float_64, eN16, name)
#define ENG_TRIG64(name)                                                                      \
    ENG_LANES(double, double_64, name)                                                        \
    ENG_VARIANT(double_16, double_64, bN2, name) ENG_VARIANT(double_32, double_64, cN4, name) \
    ENG_VARIANT(double_32, double_64, dN4, name) ENG_VARIANT(double_64, double_64, eN8, name)
#elif defined(__AVX__)
#define ENG_TRIG(name)                                                                    \
    ENG_LANES(float, float_32, name)                                                      \
    ENG_VARIANT(float_16, float_32, bN4, name) ENG_VARIANT(float_32, float_32, cN8, name) \
    ENG_VARIANT(float_32, float_32, dN8, name)
#define ENG_TRIG64(name)                                                                      \
    ENG_LANES(double, double_32, name)                                                        \
    ENG_VARIANT(double_16, double_32, bN2, name) ENG_VARIANT(double_32, double_32, cN4, name) \
    ENG_VARIANT(double_32, double_32, dN4, name)
#else
#define ENG_TRIG(name) \
    ENG_LANES(float, float_16, name) ENG_VARIANT(float_16, float_16, bN4, name)
#define ENG_TRIG64(name) \
    ENG_LANES(double, double_16, name) ENG_VARIANT(double_16, double_16, bN2, name)
#endif

}  // namespace vm
}  // namespace eng
#else
#define ENG_TRIG(name)
#define ENG_TRIG64(name)
#endif

// A function of float32 of which vectors have a form of their own: for one number, and for as many
// as a vector has. GCC takes the latter by the names that the vector function ABI gives them.
// Each function has a header, which kernels include that call it.
#pragma once
#include "math.h"

#if defined(ENG_SIMD)
namespace eng {
namespace vm {

typedef float v4 __attribute__((vector_size(16)));
typedef float v8 __attribute__((vector_size(32)));
typedef float v16 __attribute__((vector_size(64)));

#define ENG_LANES(name)                                                                     \
    template <class V> ENG_INLINE V name##_lanes(V x) {                                     \
        constexpr int n = int(sizeof(V) / sizeof(float));                                   \
        float in[n], out[n];                                                                \
        int32_t far = 0;                                                                    \
        ENG_LIB(memcpy)(in, &x, sizeof(V));                                                 \
        for (int i = 0; i < n; ++i) {                                                       \
            out[i] = name##_fast(in[i]);                                                    \
            far |= int32_t(!(ENG_LIB(fabsf)(in[i]) <= FAST));                               \
        }                                                                                   \
        if (__builtin_expect(far, 0)) {                                                     \
            for (int i = 0; i < n; ++i) out[i] = name##_any(in[i]);                         \
        }                                                                                   \
        ENG_LIB(memcpy)(&x, out, sizeof(V));                                                \
        return x;                                                                           \
    }                                                                                       \
    extern "C" __attribute__((used)) float name##_one(float x) __asm__("eng_vm_" #name);    \
    extern "C" float name##_one(float x) { return name##_any(x); }

#if defined(__AVX512F__)
typedef v16 widest;
#elif defined(__AVX__)
typedef v8 widest;
#else
typedef v4 widest;
#endif

// Fewer numbers than the widest vector has are computed as a part of one.
#define ENG_VARIANT(V, prefix, name)                                            \
    extern "C" V name##_##prefix(V x) __asm__("_ZGV" #prefix "v_eng_vm_" #name); \
    extern "C" V name##_##prefix(V x) {                                         \
        widest w{};                                                             \
        ENG_LIB(memcpy)(&w, &x, sizeof(V));                                     \
        w = name##_widest(w);                                                   \
        ENG_LIB(memcpy)(&x, &w, sizeof(V));                                     \
        return x;                                                               \
    }
#define ENG_WIDEST(name) \
    static __attribute__((noinline)) widest name##_widest(widest x) { return name##_lanes(x); }

#if defined(__aarch64__)
typedef float v2 __attribute__((vector_size(8)));
#define ENG_VARIANTS(name) \
    ENG_WIDEST(name) ENG_VARIANT(v2, nN2, name) ENG_VARIANT(v4, nN4, name)
#elif defined(__AVX512F__)
#define ENG_VARIANTS(name)                                                              \
    ENG_WIDEST(name) ENG_VARIANT(v4, bN4, name) ENG_VARIANT(v8, cN8, name)              \
    ENG_VARIANT(v8, dN8, name) ENG_VARIANT(v16, eN16, name)
#elif defined(__AVX__)
#define ENG_VARIANTS(name)                                                              \
    ENG_WIDEST(name) ENG_VARIANT(v4, bN4, name) ENG_VARIANT(v8, cN8, name)              \
    ENG_VARIANT(v8, dN8, name)
#else
#define ENG_VARIANTS(name) ENG_WIDEST(name) ENG_VARIANT(v4, bN4, name)
#endif

#define ENG_TRIG(name) ENG_LANES(name) ENG_VARIANTS(name)

}  // namespace vm
}  // namespace eng
#else
#define ENG_TRIG(name)
#endif

// A stand-in for the device: what the CUDA dialect uses, as host C++. Of the atomics only compare
// and swap is one, which lets several threads of the host run what is made of it.
// No header is included: the dialect defines its integers itself.
#define ENG_ONE_BY_ONE
#define __device__
#define __global__
#define __grid_constant__
#define __noinline__ __attribute__((noinline))

struct shim_place { unsigned x, z; };
static thread_local shim_place blockIdx, blockDim, threadIdx, gridDim;

extern "C" void* memcpy(void*, const void*, unsigned long);
static inline double __longlong_as_double(long long bits) {
    double x;
    memcpy(&x, &bits, 8);
    return x;
}

#define SHIM_1(NAME)                                                  \
    extern "C" double NAME(double) noexcept;                          \
    extern "C" float NAME##f(float) noexcept;                         \
    static inline float NAME(float x) { return __builtin_##NAME##f(x); }
#define SHIM_2(NAME)                                                  \
    extern "C" double NAME(double, double) noexcept;                  \
    extern "C" float NAME##f(float, float) noexcept;                  \
    static inline float NAME(float x, float y) { return __builtin_##NAME##f(x, y); }
SHIM_1(sin) SHIM_1(cos) SHIM_1(tan) SHIM_1(asin) SHIM_1(acos) SHIM_1(atan)
SHIM_1(sinh) SHIM_1(cosh) SHIM_1(tanh) SHIM_1(exp) SHIM_1(log) SHIM_1(log2) SHIM_1(log10)
SHIM_1(sqrt) SHIM_1(cbrt) SHIM_1(erf) SHIM_1(erfc) SHIM_1(floor) SHIM_1(ceil) SHIM_1(trunc)
SHIM_1(round) SHIM_1(rint) SHIM_1(fabs)
SHIM_2(pow) SHIM_2(atan2) SHIM_2(copysign) SHIM_2(fmod)
extern "C" double ldexp(double, int) noexcept;
extern "C" float ldexpf(float, int) noexcept;
extern "C" double frexp(double, int*) noexcept;
extern "C" float frexpf(float, int*) noexcept;
static inline bool isnan(double x) { return x != x; }
static inline bool isinf(double x) { return __builtin_isinf(x); }
static inline bool isfinite(double x) { return __builtin_isfinite(x); }

// The device's atomics, for exactly the types that it has them for.
#define SHIM_ATOMIC(f, T, AFTER)          \
    static inline T f(T* p, T v) {        \
        const T old = *p;                 \
        *p = AFTER;                       \
        return old;                       \
    }
#define SHIM_BITS(T)                      \
    SHIM_ATOMIC(atomicAnd, T, old & v)    \
    SHIM_ATOMIC(atomicOr, T, old | v)     \
    SHIM_ATOMIC(atomicXor, T, old ^ v)    \
    SHIM_ATOMIC(atomicExch, T, v)
#define SHIM_ORDER(T)                             \
    SHIM_ATOMIC(atomicMin, T, v < old ? v : old)  \
    SHIM_ATOMIC(atomicMax, T, v > old ? v : old)
SHIM_ATOMIC(atomicAdd, unsigned int, old + v)
SHIM_ATOMIC(atomicAdd, unsigned long long, old + v)
SHIM_ATOMIC(atomicAdd, float, old + v)
SHIM_ATOMIC(atomicAdd, double, old + v)
SHIM_BITS(unsigned int)
SHIM_BITS(unsigned long long)
SHIM_ORDER(int)
SHIM_ORDER(unsigned int)
SHIM_ORDER(long long)
SHIM_ORDER(unsigned long long)
static inline void __threadfence() { __sync_synchronize(); }
template <class T> static inline T shim_cas(T* p, T compare, T v) {
    return __sync_val_compare_and_swap(p, compare, v);
}
static inline unsigned short atomicCAS(unsigned short* p, unsigned short c, unsigned short v) {
    return shim_cas(p, c, v);
}
static inline unsigned int atomicCAS(unsigned int* p, unsigned int c, unsigned int v) {
    return shim_cas(p, c, v);
}
static inline unsigned long long atomicCAS(unsigned long long* p, unsigned long long c,
                                           unsigned long long v) {
    return shim_cas(p, c, v);
}

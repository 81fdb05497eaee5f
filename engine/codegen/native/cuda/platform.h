// CUDA: qualifiers, integers, and what the device compiler offers by itself. NVRTC has no
// standard headers, and needs none here.
#pragma once

typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;  // as the device's atomics take it
typedef unsigned long long uint64_t;
static_assert(sizeof(int8_t) == 1 && sizeof(int16_t) == 2, "integers have the size in their name");
static_assert(sizeof(int32_t) == 4 && sizeof(int64_t) == 8, "integers have the size in their name");
static_assert(sizeof(void*) == 8, "arguments hold addresses of 64 bits");

#define ENG_FN static __device__ inline
#define ENG_INLINE static __device__ inline
#define ENG_MEMBER __device__ inline
#define ENG_HEAVY ENG_INLINE
#define ENG_PIECE static __device__ __noinline__
#define ENG_COLD static __device__ __noinline__ inline  // hardly ever called
#define ENG_UNROLL _Pragma("unroll")

// Functions of the device's library.
#define ENG_LIB(name) ::name
#define ENG_LIKELY(test) (test)

namespace eng {

// By their bits: constants have no way to write them.
template <class T> ENG_INLINE T infinity() { return T(__longlong_as_double(0x7ff0000000000000)); }
template <class T> ENG_INLINE T quiet_nan() { return T(__longlong_as_double(0x7ff8000000000000)); }

}  // namespace eng

// Ground rules of generated code: macros, fixed-size integers, the launch block.
// Only compiler builtins are used where a standard header would cost compile time.
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
#define ENG_PIECE static __attribute__((noinline))
#define ENG_EXPORT extern "C" __attribute__((visibility("default")))

// Before loops over components: their indices must become constants, or the value
// stays in memory.
#if defined(__clang__)
#define ENG_UNROLL _Pragma("clang loop unroll(full)")
#else
#define ENG_UNROLL _Pragma("GCC unroll 16")
#endif

// Shared with Python (engine/compile/host.py mirrors both structs).
struct eng_buf {
    unsigned char* data;
    int64_t size;  // bytes in use
    int64_t cap;   // bytes allocated
    int64_t limit;  // bytes that may be allocated; 0: any
};

struct eng_launch {
    int64_t dim[4];
    int64_t ndim;
    int64_t begin;  // linear thread index, inclusive
    int64_t end;    // exclusive
    int64_t error;  // one of eng::error_t
    eng_buf stack;
    eng_buf journal;
    eng_buf output;  // messages: a number and values each, in whole slots
};

namespace eng {

enum error_t : int64_t {
    error_none = 0,
    error_memory = 1,   // no memory for saved values
    error_journal = 2,  // read of a value that was never saved
    error_index = 3,    // the launch is too large for 32-bit thread indices
    error_stack = 4,    // a thread's saved values exceed the limit
    error_journal_limit = 5,  // the launch's journal exceeds the limit
    error_assert = 6,   // an assertion failed
};

template <class T> struct unsigned_of { using type = T; };
template <> struct unsigned_of<int8_t> { using type = uint8_t; };
template <> struct unsigned_of<int16_t> { using type = uint16_t; };
template <> struct unsigned_of<int32_t> { using type = uint32_t; };
template <> struct unsigned_of<int64_t> { using type = uint64_t; };
template <class T> using unsigned_t = typename unsigned_of<T>::type;

// What <type_traits> and <limits> would say.
template <class T> constexpr bool is_float = false;
template <> constexpr bool is_float<float> = true;
template <> constexpr bool is_float<double> = true;
template <class T> constexpr bool is_signed = T(-1) < T(0);
template <class T> constexpr int bits = int(sizeof(T)) * 8;
template <class T>
constexpr T int_max = is_signed<T> ? T(unsigned_t<T>(~unsigned_t<T>(0)) >> 1) : T(~T(0));
template <class T> constexpr T int_min = is_signed<T> ? T(-int_max<T> - 1) : T(0);
template <class T> constexpr T infinity = T(__builtin_inf());
template <class T> constexpr T quiet_nan = T(__builtin_nan(""));

// Bytes of a value on the stack or in the journal: whole 8-byte slots.
template <class T> constexpr int64_t slot_bytes = (int64_t(sizeof(T)) + 7) & ~int64_t(7);

}  // namespace eng

// What launches need whose arrays are not contiguous, or share memory: made when the first one does.
#pragma once
#include "apart.h"
#include "block.h"

namespace eng {

using run_t = void (*)(const unsigned char*, eng_launch*);
struct form_t;
// A kernel. arrays: those that it touches. bytes: of its arguments. axes: of the grid. few: threads
// of a launch that is worth copies of elements. words: of four bytes, that may be copied for a
// thread; beyond, it is as fast without. sums: over which threads sums run, that must not be cut.
// down: they run from the last one on. go: runs threads for contiguous arrays that share no memory;
// other: for any.
enum sums_t : int32_t { sums_none, sums_block, sums_row, sums_launch };
struct kernel_t {
    const touched_t* arrays;
    int64_t count, bytes;
    int32_t axes, few, words;
    sums_t sums;
    bool down;
    run_t go;
    form_t* other;
};

using any_t = void (*)(const unsigned char*, eng_launch*, const extent_t*, const kernel_t&);
// The form of a kernel for any arrays. run: null until it is made of the text, with the settings of
// the kernel. kernel: its entry point.
struct form_t {
    any_t run;
    const char *kernel, *text;
    bool precise, large;
};
#if defined(ENG_PRECISE)
constexpr bool precise = true;
#else
constexpr bool precise = false;
#endif
#if defined(ENG_LARGE)
constexpr bool large = true;
#else
constexpr bool large = false;
#endif

// Mirrored by engine/compile/cpu/late.py. lend: see lend.h. make: the function of a form, null where
// it cannot be had.
struct late_t {
    bool (*lend)(const unsigned char*, eng_launch*, const extent_t*, const kernel_t*, run_t);
    any_t (*make)(form_t*);
};

ENG_COLD void otherwise(const unsigned char* args, eng_launch* L, const extent_t* arrays,
                        const kernel_t& how) {
    any_t run = __atomic_load_n(&how.other->run, __ATOMIC_ACQUIRE);
    if (!run) run = static_cast<const late_t*>(L->late)->make(how.other);
    if (run) run(args, L, arrays, how);
    else L->error = error_form;
}

}  // namespace eng

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
// the kernel. entry: the kernel's entry point, with its name. Mirrored by
// engine/compile/cpu/forms.py.
struct form_t {
    any_t run;
    run_t entry;
    const char *name, *text;
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

// Runs a launch by it, or says that it is to be made first: Python does so, where compilers may be
// waited for. Of a launch without threads, that is all there is to do. apart: whether the form is
// not needed.
ENG_COLD void otherwise(const unsigned char* args, eng_launch* L, const extent_t* arrays,
                        const kernel_t& how, bool apart) {
    if (apart) return;
    const any_t run = __atomic_load_n(&how.other->run, __ATOMIC_ACQUIRE);
    if (run) {
        if (L->begin < L->end) run(args, L, arrays, how);
        return;
    }
    L->error = error_form;
    L->form = how.other;
}

}  // namespace eng

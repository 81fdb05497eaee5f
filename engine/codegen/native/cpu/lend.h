// Launches of which some arrays are not contiguous, or of which one is read and written by two
// names: the elements of some threads at a time are copied to memory where they are, and back. What
// does so is the same for all kernels, and made once: engine/compile/cpu/native/lend.cpp.
#pragma once
#include "apart.h"
#include "block.h"

namespace eng {

// Along a dimension of an array, a thread's indices: its coordinate along `axis` (-1 for none),
// and low to high added to it; it may look at up to `more` elements before and after these.
struct along_t {
    int32_t axis, low, high, more;
};
// An array that a kernel touches. at: where the arguments name it. size: of an element. lends:
// its threads may be given copies; each has an element of its own of what is written.
// sure: each thread writes all of it, so that no other launch can at the same time. early: threads
// only read it, before they write to any array.
struct loan_t {
    int64_t at;
    int32_t axes, size;
    bool lends, writes, sure, early;
    along_t along[4];
};
using run_t = void (*)(const unsigned char*, eng_launch*);
// A kernel. bytes: of its arguments. axes: of the grid. few: threads of a launch that is worth it.
// words: of four bytes, that may be copied for a thread; beyond, it is as fast without. sums: over
// which threads sums run, that must not be cut. down: they run from the last one on. go: runs
// threads for contiguous arrays that share no memory; plain: for any.
enum sums_t : int32_t { sums_none, sums_block, sums_row, sums_launch };
struct lender_t {
    const loan_t* loans;
    int64_t count, bytes;
    int32_t axes, few, words;
    sums_t sums;
    bool down;
    run_t go, plain;
};
using lend_t = bool (*)(const unsigned char*, eng_launch*, const extent_t*, const lender_t*);

// Runs a launch whose arrays are not all contiguous, or share memory, where there may be a gain, so
// that what lends need not be made for what it refuses. False where that cannot be: it has had no
// effect then.
ENG_ALONE bool lend(const unsigned char* args, eng_launch* L, const extent_t* arrays,
                    const lender_t& how) {
    int64_t bytes = 0;
    bool rows = false, early = false;  // columns are copied in any case
    for (int64_t k = 0; k < how.count; ++k) {
        ENG_SCALAR;
        const loan_t& loan = how.loans[k];
        early = early || loan.early;
        if (arrays[k].usable) continue;
        if (!loan.lends) return false;
        bytes += loan.writes ? 2 * loan.size : loan.size;
        rows = rows || loan.axes > 1;
    }
    const int64_t threads = L->end - L->begin;
    if (!L->lend || L->ndim != how.axes) return false;
    // Only those of many threads in place are worth to have made what lends.
    if (bytes ? !(how.sums || threads >= how.few) || !(rows || bytes <= 4 * int64_t(how.words))
              : !early || threads / 16 < how.few) return false;
    return (*static_cast<const lend_t*>(L->lend))(args, L, arrays, &how);
}

}  // namespace eng

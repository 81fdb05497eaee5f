// What a captured sequence looks at each time: see `engine.tape.replay`. Who calls has asked whether
// anybody listens, and has put down, once, where what is meant lies: see `row_words` of `launcher`.
#pragma once
#include "interpreter.h"

namespace {

struct pair_t { object *array, *told; };

// How many there are, and these.
template <class T> struct all_t {
    int64_t count;
    const T* begin() const { return reinterpret_cast<const T*>(this + 1); }
    const T* end() const { return begin() + count; }
};

template <class T> const all_t<T>& all_at(object* const* given) { return *words<all_t<T>>(given[0]); }

// ask_same(flags): True where arrays require gradients as they did, each with whether.
object* ask_same(object*, object* const* given, int64_t n) {
    if (n != 1) return nothing();
    for (const pair_t& p : all_at<pair_t>(given)) {
        const bool flag = slot(p.array, A_FLAG) == py.yes;
        if (flag && slot(p.array, A_ORIGIN) != py.none) return nothing();
        if ((flag ? py.yes : py.no) != p.told) return nothing();
    }
    return yes();
}

// have_same(gradients): True where arrays have the gradients that they had, each with its own.
object* have_same(object*, object* const* given, int64_t n) {
    if (n != 1) return nothing();
    for (const pair_t& p : all_at<pair_t>(given)) {
        if (slot(p.array, A_GRAD) != p.told) return nothing();
    }
    return yes();
}

}  // namespace

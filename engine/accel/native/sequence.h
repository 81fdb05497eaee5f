// What a captured graph looks at and announces each time. Python has asked whether anything observes,
// and has put down, once, where the objects lie: see `row_words` of `launcher`.
#pragma once
#include "arguments.h"

namespace {

struct pair_t { object *array, *told; };  // or a storage

// How many there are, and these.
template <class T> struct all_t {
    int64_t count;
    const T* begin() const { return reinterpret_cast<const T*>(this + 1); }
    const T* end() const { return begin() + count; }
};

template <class T> const all_t<T>& all_at(object* const* given) { return *words<all_t<T>>(given[0]); }

// announce_all(writes): announces writes to storages, each with how many there are. None where
// something is to be said against one, or where anything holds what one contains.
object* announce_all(object*, object* const* given, int64_t n) {
    if (n != 1) return nothing();
    const auto& writes = all_at<pair_t>(given);
    for (const pair_t& p : writes) {
        if (slot(p.array, S_GUARD) != py.none || slot(p.array, S_WRITABLE) != py.yes) return nothing();
        if (slot(p.array, S_HOLD) != py.none) return nothing();
    }
    for (const pair_t& p : writes) {
        if (!advance(p.array, py.as_long(p.told))) return nullptr;
    }
    return yes();
}

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

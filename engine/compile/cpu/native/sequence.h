// What a captured sequence looks at and announces each time: see `engine.runtime.sequences` and
// `engine.tape.replay`. Who calls has asked whether anybody listens, and has put down, once, where
// what is meant lies: see `row_words` and `write_words` of `launcher`.
#pragma once
#include "hold.h"

namespace {

struct range_t { object *lo, *hi; };  // addresses

struct place_t {
    object* storage;
    range_t range;
};

// A storage, how many writes it gets, and what of it they write.
struct write_t {
    object* storage;
    int64_t count, ranges;
    const range_t* begin() const { return reinterpret_cast<const range_t*>(this + 1); }
    const range_t* end() const { return begin() + ranges; }
    const write_t* next() const { return reinterpret_cast<const write_t*>(end()); }
};

struct pair_t { object *array, *told; };

// How many there are, and these.
template <class T> struct all_t {
    int64_t count;
    const T* begin() const { return reinterpret_cast<const T*>(this + 1); }
    const T* end() const { return begin() + count; }
};

template <class T> const all_t<T>& all_at(object* const* given) { return *words<all_t<T>>(given[0]); }

// hold_all(places): holds on what ranges of storages contain.
object* hold_all(object*, object* const* given, int64_t n) {
    if (n != 1) return nothing();
    const auto& places = all_at<place_t>(given);
    object* out = py.list(places.count);
    int64_t k = 0;
    for (const place_t& p : places) {
        object* hold = out ? held(p.storage, p.range.lo, p.range.hi) : nullptr;
        if (!hold) {
            if (out) drop(out);
            return nullptr;
        }
        py.list_set(out, k++, hold);
    }
    return out;
}

// announce_all(writes): announces them; True.
object* announce_all(object*, object* const* given, int64_t n) {
    if (n != 1) return nothing();
    const auto& writes = all_at<write_t>(given);
    const write_t* w = writes.begin();
    for (int64_t k = 0; k < writes.count; ++k, w = w->next()) {
        int64_t more = w->count;
        if (slot(w->storage, S_HOLD) != py.none) {
            for (const range_t& r : *w) {
                if (!announce(w->storage, r.lo, r.hi)) return nullptr;
                --more;
            }
        }
        if (more && !advance(w->storage, more)) return nullptr;
    }
    return yes();
}

// are_free(writes): True where nothing is to be said against any of them.
object* are_free(object*, object* const* given, int64_t n) {
    if (n != 1) return nothing();
    const auto& writes = all_at<write_t>(given);
    const write_t* w = writes.begin();
    for (int64_t k = 0; k < writes.count; ++k, w = w->next()) {
        if (slot(w->storage, S_GUARD) != py.none) return nothing();
        if (slot(w->storage, S_WRITABLE) != py.yes) return nothing();
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

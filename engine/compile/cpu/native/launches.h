// Recorded launches: of a tape's records, or of the rows that stand for them.
#pragma once
#include <stdlib.h>

#include "world.h"

namespace {

// What a row has; then come the arguments, and holds on what inputs contained. Rows follow one
// another in a list, among records of other things. First in that list is whether there may come
// more: see `engine.tape.rows`.
enum row { W_PLAN, W_DIM, W_BLOB, W_INPUTS, W_SITE, W_SELECTION, W_VALUES };

constexpr int64_t LONGEST = W_VALUES + 2 * VALUES;  // the most objects of a row

bool are_rows(object* list) {
    object* const first = py.list_size(list) ? py.list_item(list, 0) : nullptr;
    return first == py.yes || first == py.no;
}

// How many objects a row is of.
int64_t length_of(const recipe_t& r) { return W_VALUES + r.count + r.held[0]; }

// Removes what a list of rows has from a place on, which others keep. It does not fail: of few objects
// at once that mostly needs no memory, and where it does, None stands there, which is no row.
void cut(object* rows, int64_t from) {
    constexpr int64_t FEW = 8;
    int64_t end = py.list_size(rows);
    for (int64_t k = from; k < end; ++k) {
        keep(py.none);
        py.list_set(rows, k, py.none);
    }
    for (; end > from; end = py.list_size(rows)) {
        if (py.list_put(rows, end - from < FEW ? from : end - FEW, end, nullptr) != 0) {
            return py.clear();
        }
    }
}

// What a backward pass needs of a launch.
struct seen_t {
    object *dim, *blob, *selection;
    object* const* values;
    bool alone;  // no arguments share memory
    bool quiet;  // it saved nothing
};

// Launches of a list. keeps: what they have, since others may change the list while adjoints run.
struct launches_t {
    struct one_t {
        object* const* at;  // a row, or a record
        const recipe_t* recipe;
    };
    one_t* of = nullptr;
    int64_t count = 0, room = 0;
    const bool keeps;

    explicit launches_t(bool keeps) : keeps(keeps) {}
    launches_t(const launches_t&) = delete;
    void operator=(const launches_t&) = delete;

    ~launches_t() {
        free(of);
        if (copy) drop(copy);
    }

    seen_t operator[](int64_t k) const {
        object* const* const at = of[k].at;
        object* const o = *at;
        if (type_of(o) == py.plan_type) {
            return {at[W_DIM], at[W_BLOB], at[W_SELECTION], at + W_VALUES, true, true};
        }
        return {
            slot(o, R_DIM), slot(o, R_BLOB), slot(o, R_SELECTION), items(slot(o, R_VALUES)),
            slot(o, R_ALIASED) == py.nowhere,
            slot(o, R_JOURNAL) == py.none && slot(o, R_STACK) == py.zero,
        };
    }

    // The first ones, no more than that; false where there is anything else, or one that is not as
    // `fits` says of what is seen of it.
    template <class F> bool take(object* list, int64_t most, F fits) {
        const int64_t size = py.list_size(list);
        const bool rows = are_rows(list);
        if (keeps) list = copy = py.list_part(list, 0, size);
        if (!list) return false;
        object* const* const all = items(list);
        recipes_t recipes;
        for (int64_t k = rows; k < size && count < most;) {
            object* const o = all[k];
            if (rows && o == py.none) {
                ++k;
                continue;
            }
            const bool record = type_of(o) == py.record_type;
            if (!record && !(rows && type_of(o) == py.plan_type)) return false;
            const recipe_t* const r = recipes.of(record ? slot(o, R_PLAN) : o);
            if (!r || r->count > VALUES || (record && !is_whole(o, *r))) return false;
            if (!add({all + k, r}) || !fits((*this)[count - 1], *r)) return false;
            k += record ? 1 : length_of(*r);
        }
        return true;
    }

    bool take(object* list, int64_t most) {
        return take(list, most, [](const seen_t&, const recipe_t&) { return true; });
    }

  private:
    object* copy = nullptr;

    bool add(const one_t& one) {
        if (count == room) {
            const int64_t more = room ? 2 * room : 64;
            one_t* const at = static_cast<one_t*>(realloc(of, more * sizeof one));
            if (!at) return false;
            of = at, room = more;
        }
        of[count++] = one;
        return true;
    }

    static bool is_whole(object* record, const recipe_t& r) {
        object* const values = slot(record, R_VALUES);
        return type_of(values) == py.list_type && py.list_size(values) == r.count;
    }
};

}  // namespace

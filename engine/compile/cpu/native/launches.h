// Recorded launches: of a tape's records, or of the rows that stand for them.
#pragma once
#include <stdlib.h>

#include "world.h"

namespace {

// What a row has; then come the arguments, and holds on what inputs contained. Rows follow one
// another in a list, among records of other things. First in that list is whether there may come
// more: see `engine.tape.rows`.
enum row { W_PLAN, W_DIM, W_BLOB, W_INPUTS, W_SITE, W_SELECTION, W_VALUES };

bool are_rows(object* list) {
    object* const first = py.list_size(list) ? py.list_item(list, 0) : nullptr;
    return first == py.yes || first == py.no;
}

// How many objects a row is of.
int64_t length_of(const recipe_t& r) { return W_VALUES + r.count + r.held[0]; }

// Objects, kept as long as this lives if they are to be.
struct many_t {
    object** all = nullptr;
    int64_t count = 0, room = 0;
    const bool keeps;

    explicit many_t(bool keeps) : keeps(keeps) {}
    many_t(const many_t&) = delete;
    void operator=(const many_t&) = delete;

    ~many_t() {
        while (keeps && count) drop(all[--count]);
        free(all);
    }

    // False where memory ran out.
    bool add(object* o) {
        if (count == room) {
            const int64_t more = room ? 2 * room : 64;
            object** const at = static_cast<object**>(realloc(all, more * sizeof *all));
            if (!at) return false;
            all = at, room = more;
        }
        all[count++] = o;
        if (keeps) keep(o);
        return true;
    }
};

// What a backward pass needs of a launch.
struct seen_t {
    object *dim, *blob, *selection;
    const recipe_t* recipe;
    int64_t values;  // where these are among all objects
    bool alone;      // no arguments share memory
    bool quiet;      // it saved nothing
};

// Launches. keeps: what they have, since others may change the list while adjoints run.
struct launches_t {
    seen_t* of = nullptr;
    int64_t count = 0, room = 0;
    many_t kept;

    explicit launches_t(bool keeps) : kept(keeps) {}
    ~launches_t() { free(of); }

    object* const* values(int64_t k) const { return kept.all + of[k].values; }

    // The first ones of a list, no more than that; false where there is anything else.
    bool take(object* list, int64_t most) {
        const bool rows = are_rows(list);
        const int64_t size = py.list_size(list);
        recipes_t recipes;
        for (int64_t k = rows; k < size && count < most;) {
            object* const o = py.list_item(list, k);
            const bool alone = type_of(o) == py.record_type;
            if (!alone && !(rows && type_of(o) == py.plan_type)) return false;
            const recipe_t* const r = recipes.of(alone ? slot(o, R_PLAN) : o);
            if (!r || r->count > VALUES) return false;
            if (!(alone ? take_record(o, *r) : take_row(list, k, *r))) return false;
            k += alone ? 1 : length_of(*r);
        }
        return true;
    }

  private:
    bool add(const seen_t& one) {
        if (count == room) {
            const int64_t more = room ? 2 * room : 8;
            seen_t* const at = static_cast<seen_t*>(realloc(of, more * sizeof *of));
            if (!at) return false;
            of = at, room = more;
        }
        of[count++] = one;
        return kept.add(one.dim) && kept.add(one.blob) && kept.add(one.selection);
    }

    bool take_record(object* o, const recipe_t& r) {
        object* const values = slot(o, R_VALUES);
        if (type_of(values) != py.list_type || py.list_size(values) != r.count) return false;
        const int64_t at = kept.count;
        for (int64_t i = 0; i < r.count; ++i) if (!kept.add(py.list_item(values, i))) return false;
        return kept.add(slot(o, R_PLAN)) && add({
            slot(o, R_DIM), slot(o, R_BLOB), slot(o, R_SELECTION), &r, at,
            slot(o, R_ALIASED) == py.nowhere,
            slot(o, R_JOURNAL) == py.none && slot(o, R_STACK) == py.zero,
        });
    }

    bool take_row(object* list, int64_t k, const recipe_t& r) {
        object* part[W_VALUES];
        for (int i = 0; i < W_VALUES; ++i) part[i] = py.list_item(list, k + i);
        const int64_t at = kept.count;
        for (int64_t i = 0; i < r.count; ++i) {
            if (!kept.add(py.list_item(list, k + W_VALUES + i))) return false;
        }
        return kept.add(part[W_PLAN])
            && add({part[W_DIM], part[W_BLOB], part[W_SELECTION], &r, at, true, true});
    }
};

}  // namespace

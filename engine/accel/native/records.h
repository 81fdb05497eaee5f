// Recorded launches of a tape.
#pragma once
#include <stdlib.h>

#include "world.h"

namespace {

// What a backward pass needs of a launch.
struct seen_t {
    object *dim, *blob, *selection;
    object* const* values;
    bool alone;  // no arguments share memory
    bool quiet;  // it saved nothing
};

// The records of a list, of which it keeps a copy: others may change that while adjoints run.
struct records_t {
    int64_t count = 0;

    records_t() = default;
    records_t(const records_t&) = delete;
    void operator=(const records_t&) = delete;

    ~records_t() {
        free(recipes);
        if (copy) drop(copy);
    }

    seen_t operator[](int64_t k) const {
        object* const o = items(copy)[k];
        return {
            slot(o, R_DIM), slot(o, R_BLOB), slot(o, R_SELECTION), items(slot(o, R_VALUES)),
            slot(o, R_ALIASED) == py.no_aliases,
            slot(o, R_JOURNAL) == py.none && slot(o, R_STACK) == py.zero,
        };
    }

    const recipe_t& recipe(int64_t k) const { return *recipes[k]; }

    // The first ones, so many of them; false where there is anything else, or one that is not as
    // `fits` says of what is seen of it.
    template <class F> bool take(object* list, int64_t most, F fits) {
        copy = py.list_part(list, 0, most);
        if (!copy || py.list_size(copy) < most) return false;
        recipes = static_cast<const recipe_t**>(malloc((most + 1) * sizeof(recipe_t*)));
        recipes_t of;
        for (; recipes && count < most; ++count) {
            object* const o = items(copy)[count];
            const recipe_t* const r = type_of(o) == py.record_type ? of.of(slot(o, R_PLAN)) : nullptr;
            if (!r || r->count > VALUES || !is_whole(o, *r)) return false;
            recipes[count] = r;
            if (!fits((*this)[count], *r)) return false;
        }
        return recipes != nullptr;
    }

    bool take(object* list, int64_t most) {
        return take(list, most, [](const seen_t&, const recipe_t&) { return true; });
    }

  private:
    object* copy = nullptr;
    const recipe_t** recipes = nullptr;

    static bool is_whole(object* record, const recipe_t& r) {
        object* const values = slot(record, R_VALUES);
        return type_of(values) == py.list_type && py.list_size(values) == r.count;
    }
};

}  // namespace

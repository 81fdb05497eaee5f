// `launch` itself, as users call it, for launches of which nothing is to be said.
#pragma once
#include <stdlib.h>

#include "record.h"

namespace {

// Its parameters, in their order.
enum parameter {
    KERNEL, DIM, INPUTS, OUTPUTS, ADJ_INPUTS, ADJ_OUTPUTS, DEVICE, STREAM, ADJOINT, RECORD_TAPE,
    RECORD_CMD, MAX_BLOCKS, BLOCK_DIM, PARAMETERS,
};

// Calls a function of Python with what was given. names: of the last ones, or null.
object* forward(object* function, object* const* given, int64_t n, object* names) {
    if (py.call_named) return py.call_named(function, given, uint64_t(n), names);
    object *all = py.tuple(n), *named = names ? py.dict() : nullptr;
    bool whole = all && (named || !names);
    for (int64_t k = 0; all && k < n; ++k) {
        keep(given[k]);
        py.tuple_set(all, k, given[k]);
    }
    for (int64_t k = 0; whole && names && k < py.tuple_size(names); ++k) {
        whole = py.dict_set(named, py.tuple_item(names, k), given[n + k]) == 0;
    }
    object* out = whole ? py.call_all(function, all, named) : nullptr;
    if (all) drop(all);
    if (named) drop(named);
    return out;
}

struct given_t {
    object* at[PARAMETERS] = {};  // null for those that are left out

    // False where Python has to say what is wrong, or to compare names.
    bool take(object* const* given, int64_t n, object* names) {
        const int64_t named = names ? py.tuple_size(names) : 0;
        if (n > PARAMETERS) return false;
        for (int64_t k = 0; k < n; ++k) at[k] = given[k];
        for (int64_t k = 0; k < named; ++k) {
            object* const name = py.tuple_item(names, k);
            int p = 0;
            while (p < PARAMETERS && py.words[p] != name) ++p;
            if (p == PARAMETERS || at[p]) return false;
            at[p] = given[n + k];
        }
        return at[KERNEL] && at[DIM];
    }

    bool is_off(parameter p) const { return !at[p] || at[p] == py.no; }
    bool is_plain() const {
        object* const device = at[DEVICE];
        return is_off(ADJOINT) && is_off(RECORD_CMD) && (!at[STREAM] || at[STREAM] == py.none)
            && (!device || device == py.none || device == py.home || device == py.host)
            && (!at[RECORD_TAPE] || at[RECORD_TAPE] == py.yes || at[RECORD_TAPE] == py.no);
    }
};

// The plan of a kernel whose launches may go this way; null for others.
object* plan_of(object* kernel) {
    if (!py.kernel_type || !py.plan_type || type_of(kernel) != py.kernel_type) return nullptr;
    object* const plan = slot(kernel, K_PLAN);
    if (!plan || type_of(plan) != py.plan_type) return nullptr;
    object* const recipe = slot(plan, P_RECIPE);
    return recipe && type_of(recipe) == py.integer && recipe != py.zero ? plan : nullptr;
}

// Runs a launch, if it may go this way. out: what is returned; null where there was an error.
bool ran(object* plan, object* dim, object* first, object* second, bool record, object*& out) {
    const kept_t<1> kept(plan);  // while it runs, others may have the kernel forget it
    object* came = launched(*words<recipe_t>(slot(plan, P_RECIPE)), dim, first, second, record,
                            nullptr, 1);
    out = came;
    if (came == py.none) {
        drop(came);
        return false;
    }
    if (came == py.yes) {
        drop(came);
        keep(out = py.none);
    } else if (came) {
        object* method = py.get(plan, py.finish);
        out = method ? py.call(method, dim, came, static_cast<object*>(nullptr)) : nullptr;
        if (method) drop(method);
        drop(came);
    }
    return true;
}

// Lets signals' handlers and other threads run now and then: a loop of C may call nothing else. False
// where a handler raised an error.
bool breathe() {
    constexpr int64_t MANY = 1 << 10;
    static int64_t calls = 0;
    if (++calls % MANY) return true;
    py.restore(py.save());
    return py.signals() == 0;
}

// The arguments of a group that is left out; null where memory ran out.
object* none_given() {
    static object* none = nullptr;
    if (!none) none = py.tuple(0);
    return none;
}

object* call(object*, object* const* given, int64_t n, object* names) {
    if (!breathe()) return nullptr;
    given_t g;
    object* const plan = g.take(given, n, names) && g.is_plain() ? plan_of(g.at[KERNEL]) : nullptr;
    if (!plan || !none_given()) return forward(py.launcher, given, n, names);
    object* const first = g.at[INPUTS] ? g.at[INPUTS] : none_given();
    object* const second = g.at[OUTPUTS] ? g.at[OUTPUTS] : none_given();
    const bool record = !g.at[RECORD_TAPE] || g.at[RECORD_TAPE] == py.yes;
    object* out = nullptr;
    return ran(plan, g.at[DIM], first, second, record, out)
        ? out : forward(py.launcher, given, n, names);
}

// `Launch.launch`: the same of a recorded launch, which no tape records.
object* command(object* self, object* const* given, int64_t n, object* names) {
    if (!breathe()) return nullptr;
    const bool plain = !n && !names && none_given() && type_of(self) == py.command_type
        && slot(self, L_ADJOINT) == py.no;
    object* const plan = plain ? plan_of(slot(self, L_KERNEL)) : nullptr;
    object *const dim = plan ? slot(self, L_DIM) : nullptr, *out;
    if (dim && type_of(dim) == py.tuple_type && slot(self, L_PARAMS)
        && slot(plan, P_BACKEND) == slot(self, L_BACKEND)) {
        const kept_t<2> kept(dim, slot(self, L_PARAMS));  // others may change them
        if (ran(plan, dim, kept.all[1], none_given(), false, out)) return out;
    }
    const int64_t all = n + (names ? py.tuple_size(names) : 0);
    object** const more = static_cast<object**>(malloc((all + 1) * sizeof(object*)));
    if (!more) return py.raise(py.no_memory), nullptr;
    more[0] = self;
    for (int64_t k = 0; k < all; ++k) more[1 + k] = given[k];
    out = forward(py.commander, more, n + 1, names);
    free(more);
    return out;
}

}  // namespace

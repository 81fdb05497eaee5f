// Launches as users ask for them, of which nothing is to be said.
#pragma once
#include "launch.h"

namespace {

// The plan of a kernel whose launches may go this way; null for others.
object* native_plan_of(object* kernel) {
    if (!py.kernel_type || !py.plan_type || type_of(kernel) != py.kernel_type) return nullptr;
    object* const plan = slot(kernel, K_PLAN);
    if (!plan || type_of(plan) != py.plan_type) return nullptr;
    object* const recipe = slot(plan, P_RECIPE);
    return recipe && type_of(recipe) == py.integer && recipe != py.zero ? plan : nullptr;
}

// try_run(kernel, dim, inputs, outputs, device, stream, record): a launch that a user asks for, who
// has called the Python function that runs. True where it has run; Python is told what it left.
object* try_run(object*, object* const* given, int64_t n) {
    if (n != 7 || given[5] != py.none || (given[6] != py.yes && given[6] != py.no)) return nothing();
    object *const device = given[4], *const plan = native_plan_of(given[0]);
    if (!plan || !(device == py.none || device == py.host_device || device == py.host_name)) return nothing();
    const kept_t<1> kept(plan);  // while it runs, others may have the kernel forget it
    object* const came = run_recipe(*words<recipe_t>(slot(plan, P_RECIPE)), given[1], given[2],
                                  given[3], given[6] == py.yes, 2);
    if (!came || came == py.none || came == py.yes) return came;
    object* const told = py.call(py.finish, plan, given[1], py.list_item(came, 0),
                                 py.list_item(came, 1), static_cast<object*>(nullptr));
    drop(came);
    if (!told) return nullptr;
    drop(told);
    return yes();
}

}  // namespace

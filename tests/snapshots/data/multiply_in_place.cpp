// ---- primal
#include "late.h"
ENG_EXPORT void primal(const unsigned char* args, eng_launch* L);
namespace ns_primal {
template <class A_x, class A_factor>
ENG_INLINE void thread(A_x v_x, A_factor v_factor, int64_t k0) {
    const int32_t v_i = int32_t(k0);
    const float v_t_1 = v_x.at(k0);
    const float v_t_2 = v_factor.at(k0);
    const float v_t_3 = (v_t_1 * v_t_2);
    v_x.at(k0) = v_t_3;
}
ENG_ALONE void run_apart(const unsigned char* args, eng_launch* L,
    unsigned char* ENG_ONLY d_x, unsigned char* ENG_ONLY d_factor) {
    auto v_x = eng::flat<eng::array_t<float,1,true>>(args, 0, d_x);
    auto v_factor = eng::flat<eng::array_t<float,1,true>>(args, 24, d_factor);
    const int64_t begin = L->begin, end = L->end;
    int64_t c[1];
    for (int64_t row = begin, n = 0; row < end; row += n) {
        n = eng::next_row<1>(L, row, n, c);
        const int64_t first = c[0], stop = first + n;
        for (int64_t k0 = first; k0 < stop; ++k0) { thread(v_x, v_factor, k0); }
    }
}
ENG_ALONE void go(const unsigned char* args, eng_launch* L) {
    run_apart(args, L, eng::data(args, 0), eng::data(args, 24));
}
static eng::form_t other{nullptr, primal, "primal", R"engine(#include "common.h"
#include "lend.h"
namespace ns_ENGINE_OTHER {
template <class A_x, class A_factor>
ENG_INLINE void thread(A_x v_x, A_factor v_factor, int64_t k0) {
    const int32_t v_i = int32_t(k0);
    const float v_t_1 = v_x.at(k0);
    const float v_t_2 = v_factor.at(k0);
    const float v_t_3 = (v_t_1 * v_t_2);
    v_x.at(k0) = v_t_3;
}
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,1>>(args, 0);
    auto v_factor = eng::arg<eng::array_t<float,1>>(args, 24);
    const int64_t begin = L->begin, end = L->end;
    int64_t c[1];
    for (int64_t row = begin, n = 0; row < end; row += n) {
        n = eng::next_row<1>(L, row, n, c);
        const int64_t first = c[0], stop = first + n;
        for (int64_t k0 = first; k0 < stop; ++k0) { ENG_SCALAR; thread(v_x, v_factor, k0); }
    }
}
static void run_any(const unsigned char* args, eng_launch* L,
    const eng::extent_t* arrays, const eng::kernel_t& how) {
    if (eng::lend(args, L, arrays, how, run)) return;
    run(args, L);
}
}
ENG_EXPORT void ENGINE_OTHER(const unsigned char* args, eng_launch* L,
    const eng::extent_t* arrays, const eng::kernel_t& how) {
    ns_ENGINE_OTHER::run_any(args, L, arrays, how);
}
)engine",
    eng::precise, eng::large};
static const eng::along_t along_x[] = {{0, 0, 0, 0}};
static const eng::along_t along_factor[] = {{0, 0, 0, 0}};
static const eng::touched_t touched[] = {
    {0, 4, 1, true, true, true, true, false, along_x},
    {24, 4, 1, false, false, true, false, true, along_factor},
};
static const eng::kernel_t how{touched, 2, 48, 1, 750, 0, eng::sums_none, false,
    go, &other};
}
ENG_EXPORT void primal(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, false, 1)) return;
    eng::extent_t arrays[2];
    const bool apart = eng::apart(args, ns_primal::touched, arrays) && L->ndim == 1;
    if (apart && L->begin < L->end) return ns_primal::go(args, L);
    eng::otherwise(args, L, arrays, ns_primal::how, apart);
}

// ---- recorded
#include "late.h"
ENG_EXPORT void recorded(const unsigned char* args, eng_launch* L);
namespace ns_recorded {
template <class A_x, class A_factor>
ENG_INLINE void thread(eng::ctx_t& ctx, A_x v_x, A_factor v_factor, int64_t k0) {
    const int32_t v_i = int32_t(k0);
    const float v_t_1 = v_x.at(k0);
    eng::journal_sure(ctx, v_t_1);
    const float v_t_2 = v_factor.at(k0);
    const float v_t_3 = (v_t_1 * v_t_2);
    v_x.at(k0) = v_t_3;
}
ENG_ALONE void run_apart(const unsigned char* args, eng_launch* L,
    unsigned char* ENG_ONLY d_x, unsigned char* ENG_ONLY d_factor) {
    auto v_x = eng::flat<eng::array_t<float,1,true>>(args, 0, d_x);
    auto v_factor = eng::flat<eng::array_t<float,1,true>>(args, 24, d_factor);
    eng::ctx_t ctx = eng::enter(L);
    const int64_t begin = L->begin, end = L->end;
    int64_t c[1];
    for (int64_t row = begin, n = 0; row < end; row += n) {
        n = eng::next_row<1>(L, row, n, c);
        n = eng::least(n, 64);
        eng::reserve_frames(ctx, n * 16);
        if (ctx.error) break;
        const int64_t first = c[0], stop = first + n;
        for (int64_t k0 = first; k0 < stop; ++k0) { thread(ctx, v_x, v_factor, k0); eng::close_sure(ctx); if (ctx.error) break; }
        eng::check_frames(ctx);
        if (ctx.error) break;
    }
    eng::leave(L, ctx);
}
ENG_ALONE void go(const unsigned char* args, eng_launch* L) {
    run_apart(args, L, eng::data(args, 0), eng::data(args, 24));
}
static eng::form_t other{nullptr, recorded, "recorded", R"engine(#include "common.h"
#include "lend.h"
namespace ns_ENGINE_OTHER {
template <class A_x, class A_factor>
ENG_INLINE void thread(eng::ctx_t& ctx, A_x v_x, A_factor v_factor, int64_t k0) {
    const int32_t v_i = int32_t(k0);
    const float v_t_1 = v_x.at(k0);
    eng::journal_sure(ctx, v_t_1);
    const float v_t_2 = v_factor.at(k0);
    const float v_t_3 = (v_t_1 * v_t_2);
    v_x.at(k0) = v_t_3;
}
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,1>>(args, 0);
    auto v_factor = eng::arg<eng::array_t<float,1>>(args, 24);
    eng::ctx_t ctx = eng::enter(L);
    const int64_t begin = L->begin, end = L->end;
    int64_t c[1];
    for (int64_t row = begin, n = 0; row < end; row += n) {
        n = eng::next_row<1>(L, row, n, c);
        n = eng::least(n, 64);
        eng::reserve_frames(ctx, n * 16);
        if (ctx.error) break;
        const int64_t first = c[0], stop = first + n;
        for (int64_t k0 = first; k0 < stop; ++k0) { ENG_SCALAR; thread(ctx, v_x, v_factor, k0); eng::close_sure(ctx); if (ctx.error) break; }
        eng::check_frames(ctx);
        if (ctx.error) break;
    }
    eng::leave(L, ctx);
}
static void run_any(const unsigned char* args, eng_launch* L,
    const eng::extent_t* arrays, const eng::kernel_t& how) {
    if (eng::lend(args, L, arrays, how, run)) return;
    run(args, L);
}
}
ENG_EXPORT void ENGINE_OTHER(const unsigned char* args, eng_launch* L,
    const eng::extent_t* arrays, const eng::kernel_t& how) {
    ns_ENGINE_OTHER::run_any(args, L, arrays, how);
}
)engine",
    eng::precise, eng::large};
static const eng::along_t along_x[] = {{0, 0, 0, 0}};
static const eng::along_t along_factor[] = {{0, 0, 0, 0}};
static const eng::touched_t touched[] = {
    {0, 4, 1, true, true, true, true, false, along_x},
    {24, 4, 1, false, false, true, false, true, along_factor},
};
static const eng::kernel_t how{touched, 2, 48, 1, 750, 0, eng::sums_none, false,
    go, &other};
}
ENG_EXPORT void recorded(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, false, 1)) return;
    eng::extent_t arrays[2];
    const bool apart = eng::apart(args, ns_recorded::touched, arrays) && L->ndim == 1;
    if (apart && L->begin < L->end) return ns_recorded::go(args, L);
    eng::otherwise(args, L, arrays, ns_recorded::how, apart);
}

// ---- adjoint
#include "late.h"
ENG_EXPORT void adjoint(const unsigned char* args, eng_launch* L);
namespace ns_adjoint {
template <class A_x, class A_factor, class A_adj_x, class A_adj_factor>
ENG_INLINE void thread(eng::ctx_t& ctx, A_x v_x, A_factor v_factor, A_adj_x v_adj_x, A_adj_factor v_adj_factor, int64_t k0) {
    const int32_t v_i = int32_t(k0);
    const float v_t_1 = eng::journal_read<float>(ctx, int64_t(0ll));
    const float v_t_2 = v_factor.at(k0);
    const float v_ct = v_adj_x.at(k0);
    v_adj_x.at(k0) = 0.0f;
    const float v_t_5 = (v_ct * v_t_2);
    const float v_t_6 = (v_ct * v_t_1);
    eng::atomic_add(v_adj_factor.at(k0), v_t_6);
    eng::atomic_add(v_adj_x.at(k0), v_t_5);
}
ENG_ALONE void run_apart(const unsigned char* args, eng_launch* L,
    unsigned char* ENG_ONLY d_factor, unsigned char* ENG_ONLY d_adj_x, unsigned char* ENG_ONLY d_adj_factor) {
    auto v_x = eng::arg<eng::array_t<float,1>>(args, 0);
    auto v_factor = eng::flat<eng::array_t<float,1,true>>(args, 24, d_factor);
    auto v_adj_x = eng::flat<eng::array_t<float,1,true>>(args, 48, d_adj_x);
    auto v_adj_factor = eng::flat<eng::array_t<float,1,true>>(args, 72, d_adj_factor);
    eng::ctx_t ctx = eng::enter(L);
    const int64_t begin = L->begin, end = L->end;
    int64_t c[1];
    for (int64_t row = end - 1, n; row >= begin; row -= n) {
        n = eng::row_down<1>(L, row, begin, c);
        const int64_t stop = c[0], first = stop - n;
        for (int64_t k0 = stop; k0 > first; --k0) { eng::open_frame(ctx); thread(ctx, v_x, v_factor, v_adj_x, v_adj_factor, k0); if (ctx.error) { eng::abandon(L, ctx, row - (stop - k0), true); break; } eng::next_frame(ctx); }
        if (ctx.error) break;
    }
    eng::leave(L, ctx);
}
ENG_ALONE void go(const unsigned char* args, eng_launch* L) {
    run_apart(args, L, eng::data(args, 24), eng::data(args, 48), eng::data(args, 72));
}
static eng::form_t other{nullptr, adjoint, "adjoint", R"engine(#include "common.h"
#include "late.h"
namespace ns_ENGINE_OTHER {
template <class A_x, class A_factor, class A_adj_x, class A_adj_factor>
ENG_INLINE void thread(eng::ctx_t& ctx, A_x v_x, A_factor v_factor, A_adj_x v_adj_x, A_adj_factor v_adj_factor, int64_t k0) {
    const int32_t v_i = int32_t(k0);
    const float v_t_1 = eng::journal_read<float>(ctx, int64_t(0ll));
    const float v_t_2 = v_factor.at(k0);
    const float v_ct = v_adj_x.at(k0);
    v_adj_x.at(k0) = 0.0f;
    const float v_t_5 = (v_ct * v_t_2);
    const float v_t_6 = (v_ct * v_t_1);
    eng::atomic_add(v_adj_factor.at(k0), v_t_6);
    eng::atomic_add(v_adj_x.at(k0), v_t_5);
}
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,1>>(args, 0);
    auto v_factor = eng::arg<eng::array_t<float,1>>(args, 24);
    auto v_adj_x = eng::arg<eng::array_t<float,1>>(args, 48);
    auto v_adj_factor = eng::arg<eng::array_t<float,1>>(args, 72);
    eng::ctx_t ctx = eng::enter(L);
    const int64_t begin = L->begin, end = L->end;
    int64_t c[1];
    for (int64_t row = end - 1, n; row >= begin; row -= n) {
        n = eng::row_down<1>(L, row, begin, c);
        const int64_t stop = c[0], first = stop - n;
        for (int64_t k0 = stop; k0 > first; --k0) { eng::open_frame(ctx); ENG_SCALAR; thread(ctx, v_x, v_factor, v_adj_x, v_adj_factor, k0); if (ctx.error) { eng::abandon(L, ctx, row - (stop - k0), true); break; } eng::next_frame(ctx); }
        if (ctx.error) break;
    }
    eng::leave(L, ctx);
}
static void run_any(const unsigned char* args, eng_launch* L,
    const eng::extent_t* arrays, const eng::kernel_t& how) {
    run(args, L);
}
}
ENG_EXPORT void ENGINE_OTHER(const unsigned char* args, eng_launch* L,
    const eng::extent_t* arrays, const eng::kernel_t& how) {
    ns_ENGINE_OTHER::run_any(args, L, arrays, how);
}
)engine",
    eng::precise, eng::large};
static const eng::touched_t touched[] = {
    {24, 4, 1, false, false, false, false, false, nullptr},
    {48, 4, 1, true, true, false, true, false, nullptr},
    {72, 4, 1, true, true, false, true, false, nullptr},
};
static const eng::kernel_t how{touched, 3, 96, 1, 500, 1, eng::sums_none, true,
    go, &other};
}
ENG_EXPORT void adjoint(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, false, 1)) return;
    eng::extent_t arrays[3];
    const bool apart = eng::apart(args, ns_adjoint::touched, arrays) && L->ndim == 1;
    if (apart && L->begin < L->end) return ns_adjoint::go(args, L);
    eng::otherwise(args, L, arrays, ns_adjoint::how, apart);
}

// ---- primal
#include "lend.h"
namespace ns_primal {
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
}
ENG_EXPORT void primal(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, false, 1)) return;
    const eng::extent_t arrays[] = {
        eng::extent(eng::arg<eng::array_t<float,1>>(args, 0), eng::use_alone),
        eng::extent(eng::arg<eng::array_t<float,1>>(args, 24), eng::use_reads),
    };
    static const eng::loan_t loans[] = {
        {0, 1, 4, true, true, true, false, {{0, 0, 0, 0}}},
        {24, 1, 4, true, false, false, true, {{0, 0, 0, 0}}},
    };
    static const eng::lender_t how{loans, 2, 48, 1, 750, 0, eng::sums_none, false,
        ns_primal::go, ns_primal::run};
    if (eng::apart(arrays) && L->ndim == 1) {
        return ns_primal::go(args, L);
    }
    if (eng::lend(args, L, arrays, how)) return;
    ns_primal::run(args, L);
}

// ---- recorded
#include "lend.h"
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
}
ENG_EXPORT void recorded(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, false, 1)) return;
    const eng::extent_t arrays[] = {
        eng::extent(eng::arg<eng::array_t<float,1>>(args, 0), eng::use_alone),
        eng::extent(eng::arg<eng::array_t<float,1>>(args, 24), eng::use_reads),
    };
    static const eng::loan_t loans[] = {
        {0, 1, 4, true, true, true, false, {{0, 0, 0, 0}}},
        {24, 1, 4, true, false, false, true, {{0, 0, 0, 0}}},
    };
    static const eng::lender_t how{loans, 2, 48, 1, 750, 0, eng::sums_none, false,
        ns_recorded::go, ns_recorded::run};
    if (eng::apart(arrays) && L->ndim == 1) {
        return ns_recorded::go(args, L);
    }
    if (eng::lend(args, L, arrays, how)) return;
    ns_recorded::run(args, L);
}

// ---- adjoint
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
}
ENG_EXPORT void adjoint(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, false, 1)) return;
    const eng::extent_t arrays[] = {
        eng::extent(eng::arg<eng::array_t<float,1>>(args, 24), eng::use_reads),
        eng::extent(eng::arg<eng::array_t<float,1>>(args, 48), eng::use_alone),
        eng::extent(eng::arg<eng::array_t<float,1>>(args, 72), eng::use_alone),
    };
    if (eng::apart(arrays) && L->ndim == 1) {
        return ns_adjoint::go(args, L);
    }
    ns_adjoint::run(args, L);
}

// ---- primal
namespace ns_primal {
template <bool FLAT>
ENG_INLINE void thread(eng::array_t<float,1,FLAT> v_x, eng::array_t<float,1,FLAT> v_factor, int64_t k0) {
    const int32_t v_i = int32_t(k0);
    const float v_t_1 = v_x.at(k0);
    const float v_t_2 = v_factor.at(k0);
    const float v_t_3 = (v_t_1 * v_t_2);
    v_x.at(k0) = v_t_3;
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,1,FLAT>>(args, 0);
    auto v_factor = eng::arg<eng::array_t<float,1,FLAT>>(args, 24);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t row = begin, n; row < end; row += n) {
        int64_t c[1];
        n = eng::row<1>(L, row, c);
        const int64_t first = c[0], stop = first + n;
        for (int64_t k0 = first; k0 < stop; ++k0) { thread<FLAT>(v_x, v_factor, k0); }
    }
}
}
ENG_EXPORT void primal(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, false, 1)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 24));
    if (flat) ns_primal::run<true>(args, L);
    else ns_primal::run<false>(args, L);
}

// ---- recorded
namespace ns_recorded {
template <bool FLAT>
ENG_INLINE void thread(eng::ctx_t& ctx, eng::array_t<float,1,FLAT> v_x, eng::array_t<float,1,FLAT> v_factor, int64_t k0) {
    const int32_t v_i = int32_t(k0);
    const float v_t_1 = v_x.at(k0);
    if (!eng::journal_write(ctx, v_t_1)) return;
    const float v_t_2 = v_factor.at(k0);
    const float v_t_3 = (v_t_1 * v_t_2);
    v_x.at(k0) = v_t_3;
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,1,FLAT>>(args, 0);
    auto v_factor = eng::arg<eng::array_t<float,1,FLAT>>(args, 24);
    eng::ctx_t ctx = eng::enter(L);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t row = begin, n; row < end; row += n) {
        int64_t c[1];
        n = eng::row<1>(L, row, c);
        const int64_t first = c[0], stop = first + n;
        for (int64_t k0 = first; k0 < stop; ++k0) { thread<FLAT>(ctx, v_x, v_factor, k0); eng::close_frame(ctx); if (ctx.error) break; }
        if (ctx.error) break;
    }
    eng::leave(L, ctx);
}
}
ENG_EXPORT void recorded(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, false, 1)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 24));
    if (flat) ns_recorded::run<true>(args, L);
    else ns_recorded::run<false>(args, L);
}

// ---- adjoint
namespace ns_adjoint {
template <bool FLAT>
ENG_INLINE void thread(eng::ctx_t& ctx, eng::array_t<float,1,FLAT> v_x, eng::array_t<float,1,FLAT> v_factor, eng::array_t<float,1,FLAT> v_adj_x, eng::array_t<float,1,FLAT> v_adj_factor, int64_t k0) {
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
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,1,FLAT>>(args, 0);
    auto v_factor = eng::arg<eng::array_t<float,1,FLAT>>(args, 24);
    auto v_adj_x = eng::arg<eng::array_t<float,1,FLAT>>(args, 48);
    auto v_adj_factor = eng::arg<eng::array_t<float,1,FLAT>>(args, 72);
    eng::ctx_t ctx = eng::enter(L);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t row = end - 1, n; row >= begin; row -= n) {
        int64_t c[1];
        n = eng::row_down<1>(L, row, begin, c);
        const int64_t stop = c[0], first = stop - n;
        for (int64_t k0 = stop; k0 > first; --k0) { eng::open_frame(ctx); thread<FLAT>(ctx, v_x, v_factor, v_adj_x, v_adj_factor, k0); if (ctx.error) { eng::abandon(L, ctx, row - (stop - k0), true); break; } eng::next_frame(ctx); }
        if (ctx.error) break;
    }
    eng::leave(L, ctx);
}
}
ENG_EXPORT void adjoint(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, false, 1)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 24))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 48))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 72));
    if (flat) ns_adjoint::run<true>(args, L);
    else ns_adjoint::run<false>(args, L);
}

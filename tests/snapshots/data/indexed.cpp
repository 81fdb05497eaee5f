// ---- primal
namespace ns_primal {
template <bool FLAT>
ENG_INLINE void thread(eng::array_t<float,1,FLAT> v_x, eng::array_t<int32_t,1,FLAT> v_x_u2e_0_indices, eng::array_t<float,1,FLAT> v_out, int64_t k) {
    const int32_t v_i = int32_t(k);
    const int32_t v_t_1 = v_x_u2e_0_indices.at(k);
    const float v_t_2 = v_x.at(v_t_1);
    const int32_t v_t_3 = v_x_u2e_0_indices.at(k);
    const float v_t_4 = v_x.at(v_t_3);
    const float v_t_5 = (v_t_2 * v_t_4);
    v_out.at(k) = v_t_5;
    const int32_t v_t_6 = v_x_u2e_0_indices.at(k);
    v_x.at(v_t_6) = 0.0f;
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,1,FLAT>>(args, 0);
    auto v_x_u2e_0_indices = eng::arg<eng::array_t<int32_t,1,FLAT>>(args, 24);
    auto v_out = eng::arg<eng::array_t<float,1,FLAT>>(args, 48);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t k = begin; k < end; ++k) { thread<FLAT>(v_x, v_x_u2e_0_indices, v_out, k); }
}
}
ENG_EXPORT void primal(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, true, 0)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<int32_t,1>>(args, 24))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 48));
    if (flat) ns_primal::run<true>(args, L);
    else ns_primal::run<false>(args, L);
}

// ---- recorded
namespace ns_recorded {
template <bool FLAT>
ENG_INLINE void thread(eng::ctx_t& ctx, eng::array_t<float,1,FLAT> v_x, eng::array_t<int32_t,1,FLAT> v_x_u2e_0_indices, eng::array_t<float,1,FLAT> v_out, int64_t k) {
    const int32_t v_i = int32_t(k);
    const int32_t v_t_1 = v_x_u2e_0_indices.at(k);
    const float v_t_2 = v_x.at(v_t_1);
    if (!eng::journal_write(ctx, v_t_2)) return;
    const int32_t v_t_3 = v_x_u2e_0_indices.at(k);
    const float v_t_4 = v_x.at(v_t_3);
    if (!eng::journal_write(ctx, v_t_4)) return;
    const float v_t_5 = (v_t_2 * v_t_4);
    v_out.at(k) = v_t_5;
    const int32_t v_t_6 = v_x_u2e_0_indices.at(k);
    v_x.at(v_t_6) = 0.0f;
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,1,FLAT>>(args, 0);
    auto v_x_u2e_0_indices = eng::arg<eng::array_t<int32_t,1,FLAT>>(args, 24);
    auto v_out = eng::arg<eng::array_t<float,1,FLAT>>(args, 48);
    eng::ctx_t ctx = eng::enter(L);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t k = begin; k < end; ++k) { thread<FLAT>(ctx, v_x, v_x_u2e_0_indices, v_out, k); eng::close_frame(ctx); if (ctx.error) break; }
    eng::leave(L, ctx);
}
}
ENG_EXPORT void recorded(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, true, 0)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<int32_t,1>>(args, 24))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 48));
    if (flat) ns_recorded::run<true>(args, L);
    else ns_recorded::run<false>(args, L);
}

// ---- adjoint
namespace ns_adjoint {
template <bool FLAT>
ENG_INLINE void thread(eng::ctx_t& ctx, eng::array_t<float,1,FLAT> v_x, eng::array_t<int32_t,1,FLAT> v_x_u2e_0_indices, eng::array_t<float,1,FLAT> v_out, eng::array_t<float,1,FLAT> v_adj_x, eng::array_t<float,1,FLAT> v_adj_out, int64_t k) {
    const int32_t v_i = int32_t(k);
    const int32_t v_t_1 = v_x_u2e_0_indices.at(k);
    const float v_t_2 = eng::journal_read<float>(ctx, int64_t(0ll));
    const int32_t v_t_3 = v_x_u2e_0_indices.at(k);
    const float v_t_4 = eng::journal_read<float>(ctx, int64_t(1ll));
    const int32_t v_t_6 = v_x_u2e_0_indices.at(k);
    v_adj_x.at(v_t_6) = 0.0f;
    const float v_ct_1 = v_adj_out.at(k);
    v_adj_out.at(k) = 0.0f;
    const float v_t_9 = (v_ct_1 * v_t_4);
    const float v_t_10 = (v_ct_1 * v_t_2);
    eng::atomic_add(v_adj_x.at(v_t_3), v_t_10);
    eng::atomic_add(v_adj_x.at(v_t_1), v_t_9);
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,1,FLAT>>(args, 0);
    auto v_x_u2e_0_indices = eng::arg<eng::array_t<int32_t,1,FLAT>>(args, 24);
    auto v_out = eng::arg<eng::array_t<float,1,FLAT>>(args, 48);
    auto v_adj_x = eng::arg<eng::array_t<float,1,FLAT>>(args, 72);
    auto v_adj_out = eng::arg<eng::array_t<float,1,FLAT>>(args, 96);
    eng::ctx_t ctx = eng::enter(L);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t k = end - 1; k >= begin; --k) { eng::open_frame(ctx); thread<FLAT>(ctx, v_x, v_x_u2e_0_indices, v_out, v_adj_x, v_adj_out, k); if (ctx.error) { eng::abandon(L, ctx, k, true); break; } eng::next_frame(ctx); }
    eng::leave(L, ctx);
}
}
ENG_EXPORT void adjoint(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, true, 0)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<int32_t,1>>(args, 24))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 48))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 72))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 96));
    if (flat) ns_adjoint::run<true>(args, L);
    else ns_adjoint::run<false>(args, L);
}

// ---- primal
namespace ns_primal {
template <bool FLAT>
ENG_FN eng::vec_t<3,float> f0_drain(eng::array_t<float,2,FLAT> v_row, int32_t v_row_u2e_0, int32_t v_row_u2e_1_start, int32_t v_row_u2e_1_step, int32_t v_row_u2e_1_count, eng::vec_t<3,float> v_into) {
    eng::vec_t<3,float> v_into_1{};
    v_into_1 = v_into;
    for (int32_t v_j = 0; v_j < 3; ++v_j) {
        const float v_t = eng::extract(v_into_1, v_j);
        const int32_t v_t_1 = (v_j * v_row_u2e_1_step);
        const int32_t v_t_2 = (v_row_u2e_1_start + v_t_1);
        const float v_t_3 = v_row.at(v_row_u2e_0, v_t_2);
        const float v_t_4 = (v_t + v_t_3);
        eng::item(v_into_1, v_j) = v_t_4;
        const int32_t v_t_6 = (v_j * v_row_u2e_1_step);
        const int32_t v_t_7 = (v_row_u2e_1_start + v_t_6);
        v_row.at(v_row_u2e_0, v_t_7) = 0.0f;
    }
    return v_into_1;
}
template <bool FLAT>
ENG_INLINE void thread(eng::array_t<float,2,FLAT> v_x, eng::array_t<float,1,FLAT> v_out, int32_t v_n, int64_t k) {
    eng::vec_t<3,float> v_sums{};
    const int32_t v_i = int32_t(k);
    v_sums = eng::vec_t<3,float>{{0.0f, 0.0f, 0.0f}};
    for (int32_t v_k = 0; v_k < v_n; ++v_k) {
        const int32_t v_t_1 = (v_i + v_k);
        const int32_t v_t_2 = int32_t(v_x.shape[1]);
        const int32_t v_t_3 = eng::min(1, v_t_2);
        const int32_t v_t_4 = (v_t_2 - v_t_3);
        const int32_t v_t_5 = eng::max(v_t_4, 0);
        eng::vec_t<3,float> v_t_6 = f0_drain<FLAT>(v_x, v_t_1, v_t_3, 1, v_t_5, v_sums);
        v_sums = v_t_6;
    }
    const float v_t_7 = eng::extract(v_sums, 0);
    const float v_t_8 = eng::extract(v_sums, 2);
    const float v_t_9 = (v_t_7 * v_t_8);
    v_out.at(k) = v_t_9;
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,2,FLAT>>(args, 0);
    auto v_out = eng::arg<eng::array_t<float,1,FLAT>>(args, 40);
    auto v_n = eng::arg<int32_t>(args, 64);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t k = begin; k < end; ++k) { thread<FLAT>(v_x, v_out, v_n, k); }
}
}
ENG_EXPORT void primal(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, true, 0)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<float,2>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 40));
    if (flat) ns_primal::run<true>(args, L);
    else ns_primal::run<false>(args, L);
}

// ---- recorded
namespace ns_recorded {
template <bool FLAT>
ENG_INLINE void thread(eng::ctx_t& ctx, eng::array_t<float,2,FLAT> v_x, eng::array_t<float,1,FLAT> v_out, int32_t v_n, int64_t k) {
    eng::vec_t<3,float> v_sums{};
    eng::vec_t<3,float> v_into_1{};
    eng::vec_t<3,float> v_result{};
    const int32_t v_i = int32_t(k);
    v_sums = eng::vec_t<3,float>{{0.0f, 0.0f, 0.0f}};
    for (int32_t v_k = 0; v_k < v_n; ++v_k) {
        const int32_t v_t_1 = (v_i + v_k);
        const int32_t v_t_2 = int32_t(v_x.shape[1]);
        const int32_t v_t_3 = eng::min(1, v_t_2);
        eng::vec_t<3,float> v_into = v_sums;
        v_into_1 = v_into;
        for (int32_t v_j = 0; v_j < 3; ++v_j) {
            const float v_t = eng::extract(v_into_1, v_j);
            const int32_t v_t_11 = (v_t_3 + v_j);
            const float v_t_12 = v_x.at(v_t_1, v_t_11);
            if (!eng::journal_write(ctx, v_t_12)) return;
            const float v_t_13 = (v_t + v_t_12);
            eng::item(v_into_1, v_j) = v_t_13;
            const int32_t v_t_16 = (v_t_3 + v_j);
            v_x.at(v_t_1, v_t_16) = 0.0f;
        }
        v_result = v_into_1;
        eng::vec_t<3,float> v_t_6 = v_result;
        v_sums = v_t_6;
    }
    const float v_t_7 = eng::extract(v_sums, 0);
    const float v_t_8 = eng::extract(v_sums, 2);
    const float v_t_9 = (v_t_7 * v_t_8);
    v_out.at(k) = v_t_9;
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,2,FLAT>>(args, 0);
    auto v_out = eng::arg<eng::array_t<float,1,FLAT>>(args, 40);
    auto v_n = eng::arg<int32_t>(args, 64);
    eng::ctx_t ctx = eng::enter(L);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t k = begin; k < end; ++k) { thread<FLAT>(ctx, v_x, v_out, v_n, k); eng::close_frame(ctx); if (ctx.error) break; }
    eng::leave(L, ctx);
}
}
ENG_EXPORT void recorded(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, true, 0)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<float,2>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 40));
    if (flat) ns_recorded::run<true>(args, L);
    else ns_recorded::run<false>(args, L);
}

// ---- adjoint
namespace ns_adjoint {
template <bool FLAT>
ENG_INLINE void thread(eng::ctx_t& ctx, eng::array_t<float,2,FLAT> v_x, eng::array_t<float,1,FLAT> v_out, int32_t v_n, eng::array_t<float,2,FLAT> v_adj_x, eng::array_t<float,1,FLAT> v_adj_out, int64_t k) {
    eng::vec_t<3,float> v_sums{};
    eng::vec_t<3,float> v_into_1{};
    int64_t v_journal{};
    eng::vec_t<3,float> v_result{};
    eng::vec_t<3,float> v_adj_sums{};
    eng::vec_t<3,float> v_adj_result{};
    eng::vec_t<3,float> v_adj_into{};
    const int32_t v_i = int32_t(k);
    v_sums = eng::vec_t<3,float>{{0.0f, 0.0f, 0.0f}};
    const int32_t v_trips = eng::max(v_n, 0);
    for (int32_t v_k_1 = 0; v_k_1 < v_n; ++v_k_1) {
        eng::vec_t<3,float> v_into_2 = v_sums;
        v_into_1 = v_into_2;
        for (int32_t v_j_1 = 0; v_j_1 < 3; ++v_j_1) {
            const float v_t_17 = eng::extract(v_into_1, v_j_1);
            const float v_t_19 = eng::journal_read<float>(ctx, v_journal);
            const int64_t v_t_20 = (v_journal + int64_t(1ll));
            v_journal = v_t_20;
            const float v_t_21 = (v_t_17 + v_t_19);
            eng::item(v_into_1, v_j_1) = v_t_21;
        }
        v_result = v_into_1;
        eng::vec_t<3,float> v_t_24 = v_result;
        v_sums = v_t_24;
    }
    const float v_t_7 = eng::extract(v_sums, 0);
    const float v_t_8 = eng::extract(v_sums, 2);
    const float v_ct = v_adj_out.at(k);
    v_adj_out.at(k) = 0.0f;
    const float v_t_26 = (v_ct * v_t_8);
    const float v_t_27 = (v_ct * v_t_7);
    eng::vec_t<3,float> v_t_32 = eng::insert(eng::vec_t<3,float>{{0.0f, 0.0f, 0.0f}}, 2, v_t_27);
    eng::vec_t<3,float> v_t_35 = eng::insert(v_t_32, 0, v_t_26);
    v_adj_sums = v_t_35;
    const int32_t v_t_63 = (v_trips - 1);
    for (int32_t v_k_2 = v_t_63; v_k_2 > (-1); --v_k_2) {
        const int32_t v_t_1 = (v_i + v_k_2);
        const int32_t v_t_2 = int32_t(v_x.shape[1]);
        const int32_t v_t_3 = eng::min(1, v_t_2);
        eng::vec_t<3,float> v_ct_4 = v_adj_sums;
        eng::vec_t<3,float> v_t_46 = (v_adj_result + v_ct_4);
        v_adj_result = eng::vec_t<3,float>{{0.0f, 0.0f, 0.0f}};
        eng::vec_t<3,float> v_t_47 = (v_adj_into + v_t_46);
        v_adj_into = v_t_47;
        const int32_t v_t_60 = (3 - 1);
        for (int32_t v_k_3 = v_t_60; v_k_3 > (-1); --v_k_3) {
            const int32_t v_t_11 = (v_t_3 + v_k_3);
            const int32_t v_t_16 = (v_t_3 + v_k_3);
            v_adj_x.at(v_t_1, v_t_16) = 0.0f;
            eng::vec_t<3,float> v_ct_8 = v_adj_into;
            eng::vec_t<3,float> v_t_51 = eng::insert(v_ct_8, v_k_3, 0.0f);
            const float v_t_52 = eng::extract(v_ct_8, v_k_3);
            eng::atomic_add(v_adj_x.at(v_t_1, v_t_11), v_t_52);
            const float v_t_57 = eng::extract(v_t_51, v_k_3);
            const float v_t_58 = (v_t_57 + v_t_52);
            eng::vec_t<3,float> v_t_59 = eng::insert(v_t_51, v_k_3, v_t_58);
            v_adj_into = v_t_59;
        }
        eng::vec_t<3,float> v_ct_13 = v_adj_into;
        v_adj_into = eng::vec_t<3,float>{{0.0f, 0.0f, 0.0f}};
        v_adj_sums = v_ct_13;
    }
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,2,FLAT>>(args, 0);
    auto v_out = eng::arg<eng::array_t<float,1,FLAT>>(args, 40);
    auto v_n = eng::arg<int32_t>(args, 64);
    auto v_adj_x = eng::arg<eng::array_t<float,2,FLAT>>(args, 72);
    auto v_adj_out = eng::arg<eng::array_t<float,1,FLAT>>(args, 112);
    eng::ctx_t ctx = eng::enter(L);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t k = end - 1; k >= begin; --k) { eng::open_frame(ctx); thread<FLAT>(ctx, v_x, v_out, v_n, v_adj_x, v_adj_out, k); if (ctx.error) { eng::abandon(L, ctx, k, true); break; } eng::next_frame(ctx); }
    eng::leave(L, ctx);
}
}
ENG_EXPORT void adjoint(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, true, 0)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<float,2>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 40))
        && eng::is_flat(eng::arg<eng::array_t<float,2>>(args, 72))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 112));
    if (flat) ns_adjoint::run<true>(args, L);
    else ns_adjoint::run<false>(args, L);
}

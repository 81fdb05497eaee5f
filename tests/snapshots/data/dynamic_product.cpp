// ---- primal
namespace ns_primal {
template <bool FLAT>
ENG_INLINE void thread(eng::array_t<float,1,FLAT> v_x, int32_t v_count, eng::array_t<float,1,FLAT> v_out, int64_t k) {
    float v_product{};
    const int32_t v_i = int32_t(k);
    v_product = 1.0f;
    for (int32_t v_j = 0; v_j < v_count; ++v_j) {
        const int32_t v_t_1 = (v_i + v_j);
        const float v_t_2 = v_x.at(v_t_1);
        const float v_t_3 = (v_product * v_t_2);
        v_product = v_t_3;
    }
    v_out.at(k) = v_product;
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,1,FLAT>>(args, 0);
    auto v_count = eng::arg<int32_t>(args, 24);
    auto v_out = eng::arg<eng::array_t<float,1,FLAT>>(args, 32);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t k = begin; k < end; ++k) { thread<FLAT>(v_x, v_count, v_out, k); }
}
}
ENG_EXPORT void primal(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, true, 0)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 32));
    if (flat) ns_primal::run<true>(args, L);
    else ns_primal::run<false>(args, L);
}

// ---- adjoint
namespace ns_adjoint {
template <bool FLAT>
ENG_INLINE void thread(eng::ctx_t& ctx, eng::array_t<float,1,FLAT> v_x, int32_t v_count, eng::array_t<float,1,FLAT> v_out, eng::array_t<float,1,FLAT> v_adj_x, eng::array_t<float,1,FLAT> v_adj_out, int64_t k) {
    float v_product{};
    float v_adj_product{};
    const int32_t v_i = int32_t(k);
    v_product = 1.0f;
    const int32_t v_trips = eng::max(v_count, 0);
    for (int32_t v_j_1 = 0; v_j_1 < v_count; ++v_j_1) {
        if (!eng::push(ctx, v_product)) return;
        const int32_t v_t = (v_i + v_j_1);
        const float v_t_4 = v_x.at(v_t);
        const float v_t_5 = (v_product * v_t_4);
        v_product = v_t_5;
    }
    const float v_ct = v_adj_out.at(k);
    v_adj_out.at(k) = 0.0f;
    v_adj_product = v_ct;
    const int32_t v_t_13 = (v_trips - 1);
    for (int32_t v_k = v_t_13; v_k > (-1); --v_k) {
        v_product = eng::pop<float>(ctx);
        const int32_t v_t_1 = (v_i + v_k);
        const float v_t_2 = v_x.at(v_t_1);
        const float v_product_was_2 = v_product;
        const float v_ct_1 = v_adj_product;
        const float v_t_9 = (v_ct_1 * v_t_2);
        const float v_t_10 = (v_ct_1 * v_product_was_2);
        v_adj_product = v_t_9;
        eng::atomic_add(v_adj_x.at(v_t_1), v_t_10);
    }
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,1,FLAT>>(args, 0);
    auto v_count = eng::arg<int32_t>(args, 24);
    auto v_out = eng::arg<eng::array_t<float,1,FLAT>>(args, 32);
    auto v_adj_x = eng::arg<eng::array_t<float,1,FLAT>>(args, 56);
    auto v_adj_out = eng::arg<eng::array_t<float,1,FLAT>>(args, 80);
    eng::ctx_t ctx = eng::enter(L);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t k = end - 1; k >= begin; --k) { thread<FLAT>(ctx, v_x, v_count, v_out, v_adj_x, v_adj_out, k); if (ctx.error) { eng::abandon(L, ctx, k, false); break; } }
    eng::leave(L, ctx);
}
}
ENG_EXPORT void adjoint(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, true, 0)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 32))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 56))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 80));
    if (flat) ns_adjoint::run<true>(args, L);
    else ns_adjoint::run<false>(args, L);
}

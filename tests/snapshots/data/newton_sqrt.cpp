// ---- primal
namespace ns_primal {
template <bool FLAT>
ENG_INLINE void thread(eng::array_t<double,1,FLAT> v_x, eng::array_t<double,1,FLAT> v_out, int64_t k) {
    double v_guess{};
    const int32_t v_i = int32_t(k);
    const double v_t_1 = v_x.at(k);
    v_guess = v_t_1;
    for (;;) {
        const double v_t_2 = (v_guess * v_guess);
        const double v_t_3 = v_x.at(k);
        const double v_t_4 = (v_t_2 - v_t_3);
        const double v_t_5 = eng::abs(v_t_4);
        const bool v_t_6 = (v_t_5 > 1.0e-09);
        if (!(v_t_6)) break;
        const double v_t_7 = v_x.at(k);
        const double v_t_8 = eng::div(v_t_7, v_guess);
        const double v_t_9 = (v_guess + v_t_8);
        const double v_t_10 = (5.0e-01 * v_t_9);
        v_guess = v_t_10;
    }
    v_out.at(k) = v_guess;
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<double,1,FLAT>>(args, 0);
    auto v_out = eng::arg<eng::array_t<double,1,FLAT>>(args, 24);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t k = begin; k < end; ++k) { thread<FLAT>(v_x, v_out, k); }
}
}
ENG_EXPORT void primal(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, true, 0)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<double,1>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<double,1>>(args, 24));
    if (flat) ns_primal::run<true>(args, L);
    else ns_primal::run<false>(args, L);
}

// ---- adjoint
namespace ns_adjoint {
template <bool FLAT>
ENG_INLINE void thread(eng::ctx_t& ctx, eng::array_t<double,1,FLAT> v_x, eng::array_t<double,1,FLAT> v_out, eng::array_t<double,1,FLAT> v_adj_x, eng::array_t<double,1,FLAT> v_adj_out, int64_t k) {
    double v_guess{};
    int64_t v_trips{};
    double v_adj_guess{};
    const int32_t v_i = int32_t(k);
    const double v_t_1 = v_x.at(k);
    v_guess = v_t_1;
    v_trips = int64_t(0ll);
    for (;;) {
        const double v_t = (v_guess * v_guess);
        const double v_t_11 = v_x.at(k);
        const double v_t_12 = (v_t - v_t_11);
        const double v_t_13 = eng::abs(v_t_12);
        const bool v_t_14 = (v_t_13 > 1.0e-09);
        if (!(v_t_14)) break;
        if (!eng::push(ctx, v_guess)) return;
        const double v_t_15 = v_x.at(k);
        const double v_t_16 = eng::div(v_t_15, v_guess);
        const double v_t_17 = (v_guess + v_t_16);
        const double v_t_18 = (5.0e-01 * v_t_17);
        v_guess = v_t_18;
        const int64_t v_t_19 = (v_trips + int64_t(1ll));
        v_trips = v_t_19;
    }
    const int64_t v_t_20 = v_trips;
    const double v_ct = v_adj_out.at(k);
    v_adj_out.at(k) = 0.0;
    v_adj_guess = v_ct;
    const int64_t v_t_35 = (v_t_20 - int64_t(1ll));
    for (int64_t v_k = v_t_35; v_k > int64_t((-1ll)); --v_k) {
        v_guess = eng::pop<double>(ctx);
        const double v_t_7 = v_x.at(k);
        const double v_t_8 = eng::div(v_t_7, v_guess);
        const double v_guess_was_2 = v_guess;
        const double v_ct_1 = v_adj_guess;
        const double v_t_24 = (v_ct_1 * 5.0e-01);
        const double v_t_28 = eng::div(1.0, v_guess_was_2);
        const double v_t_29 = eng::neg(v_t_8);
        const double v_t_30 = (v_t_29 * v_t_28);
        const double v_t_31 = (v_t_24 * v_t_28);
        const double v_t_32 = (v_t_24 * v_t_30);
        const double v_t_34 = (v_t_24 + v_t_32);
        v_adj_guess = v_t_34;
        eng::atomic_add(v_adj_x.at(k), v_t_31);
    }
    const double v_ct_6 = v_adj_guess;
    eng::atomic_add(v_adj_x.at(k), v_ct_6);
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<double,1,FLAT>>(args, 0);
    auto v_out = eng::arg<eng::array_t<double,1,FLAT>>(args, 24);
    auto v_adj_x = eng::arg<eng::array_t<double,1,FLAT>>(args, 48);
    auto v_adj_out = eng::arg<eng::array_t<double,1,FLAT>>(args, 72);
    eng::ctx_t ctx = eng::enter(L);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t k = end - 1; k >= begin; --k) { thread<FLAT>(ctx, v_x, v_out, v_adj_x, v_adj_out, k); if (ctx.error) { eng::abandon(L, ctx, k, false); break; } }
    eng::leave(L, ctx);
}
}
ENG_EXPORT void adjoint(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, true, 0)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<double,1>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<double,1>>(args, 24))
        && eng::is_flat(eng::arg<eng::array_t<double,1>>(args, 48))
        && eng::is_flat(eng::arg<eng::array_t<double,1>>(args, 72));
    if (flat) ns_adjoint::run<true>(args, L);
    else ns_adjoint::run<false>(args, L);
}

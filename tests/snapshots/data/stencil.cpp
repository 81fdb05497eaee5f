// ---- primal
namespace ns_primal {
template <bool FLAT>
ENG_INLINE void thread(eng::array_t<float,2,FLAT> v_u, eng::array_t<float,2,FLAT> v_out, int64_t k0, int64_t k1) {
    const int32_t v_t = int32_t(k0);
    const int32_t v_t_1 = int32_t(k1);
    const bool v_t_2 = (v_t > 0);
    const int32_t v_t_3 = int32_t(v_u.shape[0]);
    const int32_t v_t_4 = (v_t_3 - 1);
    const bool v_t_5 = (v_t < v_t_4);
    const bool v_t_6 = eng::land(v_t_2, v_t_5);
    const bool v_t_7 = (v_t_1 > 0);
    const bool v_t_8 = eng::land(v_t_6, v_t_7);
    const int32_t v_t_9 = int32_t(v_u.shape[1]);
    const int32_t v_t_10 = (v_t_9 - 1);
    const bool v_t_11 = (v_t_1 < v_t_10);
    const bool v_t_12 = eng::land(v_t_8, v_t_11);
    if (v_t_12) {
        const int32_t v_t_13 = (v_t - 1);
        const float v_t_14 = v_u.at(k0 - 1, k1);
        const int32_t v_t_15 = (v_t + 1);
        const float v_t_16 = v_u.at(k0 + 1, k1);
        const float v_t_17 = (v_t_14 + v_t_16);
        const int32_t v_t_18 = (v_t_1 - 1);
        const float v_t_19 = v_u.at(k0, k1 - 1);
        const float v_t_20 = (v_t_17 + v_t_19);
        const int32_t v_t_21 = (v_t_1 + 1);
        const float v_t_22 = v_u.at(k0, k1 + 1);
        const float v_around = (v_t_20 + v_t_22);
        const float v_t_24 = (2.5e-01f * v_around);
        const float v_t_25 = v_u.at(k0, k1);
        const float v_t_26 = v_u.at(k0, k1);
        const float v_t_27 = (v_t_25 * v_t_26);
        const float v_t_28 = (v_t_24 - v_t_27);
        v_out.at(k0, k1) = v_t_28;
    }
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_u = eng::arg<eng::array_t<float,2,FLAT>>(args, 0);
    auto v_out = eng::arg<eng::array_t<float,2,FLAT>>(args, 40);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t row = begin, n; row < end; row += n) {
        int64_t c[2];
        n = eng::row<2>(L, row, c);
        const int64_t k0 = c[0];
        const int64_t first = c[1], stop = first + n;
        for (int64_t k1 = first; k1 < stop; ++k1) { thread<FLAT>(v_u, v_out, k0, k1); }
    }
}
}
ENG_EXPORT void primal(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, false, 2)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<float,2>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<float,2>>(args, 40));
    if (flat) ns_primal::run<true>(args, L);
    else ns_primal::run<false>(args, L);
}

// ---- adjoint
namespace ns_adjoint {
template <bool FLAT>
ENG_INLINE void thread(eng::array_t<float,2,FLAT> v_u, eng::array_t<float,2,FLAT> v_out, eng::array_t<float,2,FLAT> v_adj_u, eng::array_t<float,2,FLAT> v_adj_out, int64_t k0, int64_t k1) {
    int32_t v_t_13;
    int32_t v_t_15;
    int32_t v_t_18;
    int32_t v_t_21;
    float v_t_25;
    float v_t_26;
    const int32_t v_t = int32_t(k0);
    const int32_t v_t_1 = int32_t(k1);
    const bool v_t_2 = (v_t > 0);
    const int32_t v_t_3 = int32_t(v_u.shape[0]);
    const int32_t v_t_4 = (v_t_3 - 1);
    const bool v_t_5 = (v_t < v_t_4);
    const bool v_t_6 = eng::land(v_t_2, v_t_5);
    const bool v_t_7 = (v_t_1 > 0);
    const bool v_t_8 = eng::land(v_t_6, v_t_7);
    const int32_t v_t_9 = int32_t(v_u.shape[1]);
    const int32_t v_t_10 = (v_t_9 - 1);
    const bool v_t_11 = (v_t_1 < v_t_10);
    const bool v_t_12 = eng::land(v_t_8, v_t_11);
    if (v_t_12) {
        v_t_13 = (v_t - 1);
        v_t_15 = (v_t + 1);
        v_t_18 = (v_t_1 - 1);
        v_t_21 = (v_t_1 + 1);
        v_t_25 = v_u.at(k0, k1);
        v_t_26 = v_u.at(k0, k1);
    }
    if (v_t_12) {
        const float v_ct = v_adj_out.at(k0, k1);
        v_adj_out.at(k0, k1) = 0.0f;
        const float v_t_29 = eng::neg(v_ct);
        const float v_t_32 = (v_t_29 * v_t_26);
        const float v_t_33 = (v_t_29 * v_t_25);
        eng::atomic_add(v_adj_u.at(k0, k1), v_t_33);
        eng::atomic_add(v_adj_u.at(k0, k1), v_t_32);
        const float v_t_37 = (v_ct * 2.5e-01f);
        eng::atomic_add(v_adj_u.at(k0, k1 + 1), v_t_37);
        eng::atomic_add(v_adj_u.at(k0, k1 - 1), v_t_37);
        eng::atomic_add(v_adj_u.at(k0 + 1, k1), v_t_37);
        eng::atomic_add(v_adj_u.at(k0 - 1, k1), v_t_37);
    }
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_u = eng::arg<eng::array_t<float,2,FLAT>>(args, 0);
    auto v_out = eng::arg<eng::array_t<float,2,FLAT>>(args, 40);
    auto v_adj_u = eng::arg<eng::array_t<float,2,FLAT>>(args, 80);
    auto v_adj_out = eng::arg<eng::array_t<float,2,FLAT>>(args, 120);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t row = end - 1, n; row >= begin; row -= n) {
        int64_t c[2];
        n = eng::row_down<2>(L, row, begin, c);
        const int64_t k0 = c[0];
        const int64_t stop = c[1], first = stop - n;
        for (int64_t k1 = stop; k1 > first; --k1) { thread<FLAT>(v_u, v_out, v_adj_u, v_adj_out, k0, k1); }
    }
}
}
ENG_EXPORT void adjoint(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, false, 2)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<float,2>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<float,2>>(args, 40))
        && eng::is_flat(eng::arg<eng::array_t<float,2>>(args, 80))
        && eng::is_flat(eng::arg<eng::array_t<float,2>>(args, 120));
    if (flat) ns_adjoint::run<true>(args, L);
    else ns_adjoint::run<false>(args, L);
}

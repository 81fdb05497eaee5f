// ---- primal
namespace ns_primal {
template <bool FLAT>
ENG_INLINE void thread(eng::array_t<float,1,FLAT> v_x, eng::array_t<float,1,FLAT> v_out, int64_t k) {
    bool v_r{};
    const int32_t v_i = int32_t(k);
    const float v_t_1 = v_x.at(k);
    const bool v_t_2 = (v_t_1 < 0.0f);
    if (v_t_2) {
        return;
    }
    const bool v_t_3 = (v_i > 0);
    if (v_t_3) {
        const int32_t v_t_4 = (v_i - 1);
        const float v_t_5 = v_x.at(k - 1);
        const float v_t_6 = v_x.at(k);
        const bool v_t_7 = (v_t_5 > v_t_6);
        v_r = v_t_7;
    } else {
        v_r = false;
    }
    if (v_r) {
        const int32_t v_t_8 = (v_i - 1);
        const int32_t v_t_9 = int32_t(v_x.shape[0]);
        const int32_t v_t_10 = ((v_t_8) < 0 ? (v_t_8) + (v_t_9) : (v_t_8));
        const float v_t_11 = v_x.at(v_t_10);
        v_out.at(k) = v_t_11;
        return;
    }
    const float v_t_12 = v_x.at(k);
    const float v_t_13 = eng::sqrt(v_t_12);
    v_out.at(k) = v_t_13;
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,1,FLAT>>(args, 0);
    auto v_out = eng::arg<eng::array_t<float,1,FLAT>>(args, 24);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t k = begin; k < end; ++k) { thread<FLAT>(v_x, v_out, k); }
}
}
ENG_EXPORT void primal(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, true, 0)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 24));
    if (flat) ns_primal::run<true>(args, L);
    else ns_primal::run<false>(args, L);
}

// ---- adjoint
namespace ns_adjoint {
template <bool FLAT>
ENG_INLINE void thread(eng::array_t<float,1,FLAT> v_x, eng::array_t<float,1,FLAT> v_out, eng::array_t<float,1,FLAT> v_adj_x, eng::array_t<float,1,FLAT> v_adj_out, int64_t k) {
    bool v_go{};
    bool v_r{};
    bool v_t_14;
    int32_t v_t_10;
    bool v_t_15;
    float v_t_13;
    v_go = true;
    const int32_t v_i = int32_t(k);
    const float v_t_1 = v_x.at(k);
    const bool v_t_2 = (v_t_1 < 0.0f);
    if (v_t_2) {
        v_go = false;
    }
    const bool v_t = v_go;
    if (v_t) {
        const bool v_t_3 = (v_i > 0);
        if (v_t_3) {
            const int32_t v_t_4 = (v_i - 1);
            const float v_t_5 = v_x.at(k - 1);
            const float v_t_6 = v_x.at(k);
            const bool v_t_7 = (v_t_5 > v_t_6);
            v_r = v_t_7;
        } else {
            v_r = false;
        }
        v_t_14 = v_r;
        if (v_t_14) {
            const int32_t v_t_8 = (v_i - 1);
            const int32_t v_t_9 = int32_t(v_x.shape[0]);
            v_t_10 = ((v_t_8) < 0 ? (v_t_8) + (v_t_9) : (v_t_8));
            v_go = false;
        }
        v_t_15 = v_go;
        if (v_t_15) {
            const float v_t_12 = v_x.at(k);
            v_t_13 = eng::sqrt(v_t_12);
        }
    }
    if (v_t) {
        if (v_t_15) {
            const float v_ct = v_adj_out.at(k);
            v_adj_out.at(k) = 0.0f;
            const float v_t_17 = eng::div(5.0e-01f, v_t_13);
            const float v_t_18 = (v_ct * v_t_17);
            eng::atomic_add(v_adj_x.at(k), v_t_18);
        }
        if (v_t_14) {
            const float v_ct_3 = v_adj_out.at(k);
            v_adj_out.at(k) = 0.0f;
            eng::atomic_add(v_adj_x.at(v_t_10), v_ct_3);
        }
    }
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,1,FLAT>>(args, 0);
    auto v_out = eng::arg<eng::array_t<float,1,FLAT>>(args, 24);
    auto v_adj_x = eng::arg<eng::array_t<float,1,FLAT>>(args, 48);
    auto v_adj_out = eng::arg<eng::array_t<float,1,FLAT>>(args, 72);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t k = end - 1; k >= begin; --k) { thread<FLAT>(v_x, v_out, v_adj_x, v_adj_out, k); }
}
}
ENG_EXPORT void adjoint(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, true, 0)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 24))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 48))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 72));
    if (flat) ns_adjoint::run<true>(args, L);
    else ns_adjoint::run<false>(args, L);
}

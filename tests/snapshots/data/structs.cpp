// ---- primal
namespace ns_primal {
struct r_f0_heavier { eng::vec_t<3,float> r0; float r1; };
ENG_FN r_f0_heavier f0_heavier(eng::vec_t<3,float> v_a_u2e_pos, float v_a_u2e_mass, eng::vec_t<3,float> v_b_u2e_pos, float v_b_u2e_mass) {
    const bool v_t = (v_a_u2e_mass > v_b_u2e_mass);
    if (v_t) {
        return r_f0_heavier{v_a_u2e_pos, v_a_u2e_mass};
    }
    return r_f0_heavier{v_b_u2e_pos, v_b_u2e_mass};
}
template <bool FLAT>
ENG_INLINE void thread(eng::array_t<eng::vec_t<3,float>,1,FLAT> v_s_u2e_bodies_u2e_pos, eng::array_t<float,1,FLAT> v_s_u2e_bodies_u2e_mass, eng::vec_t<3,float> v_s_u2e_gravity, eng::array_t<float,1,FLAT> v_s_u2e_energy, eng::array_t<eng::vec_t<3,float>,1,FLAT> v_out_u2e_pos, eng::array_t<float,1,FLAT> v_out_u2e_mass, int64_t k) {
    eng::vec_t<3,float> v_b_u2e_pos{};
    float v_b_u2e_mass{};
    const int32_t v_i = int32_t(k);
    eng::vec_t<3,float> v_t_1 = v_s_u2e_bodies_u2e_pos.at(k);
    const float v_t_2 = v_s_u2e_bodies_u2e_mass.at(k);
    eng::vec_t<3,float> v_t_3 = v_s_u2e_bodies_u2e_pos.at(0);
    const float v_t_4 = v_s_u2e_bodies_u2e_mass.at(0);
    r_f0_heavier call_t_5 = f0_heavier(v_t_1, v_t_2, v_t_3, v_t_4);
    eng::vec_t<3,float> v_t_5 = call_t_5.r0;
    const float v_t_6 = call_t_5.r1;
    v_b_u2e_pos = v_t_5;
    v_b_u2e_mass = v_t_6;
    eng::vec_t<3,float> v_t_7 = eng::scale(v_s_u2e_gravity, v_b_u2e_mass);
    eng::vec_t<3,float> v_t_8 = (v_b_u2e_pos + v_t_7);
    v_b_u2e_pos = v_t_8;
    v_out_u2e_pos.at(k) = v_b_u2e_pos;
    v_out_u2e_mass.at(k) = v_b_u2e_mass;
    const float v_t_9 = v_out_u2e_mass.at(k);
    const float v_t_10 = (v_t_9 * 2.0f);
    v_out_u2e_mass.at(k) = v_t_10;
    const float v_t_11 = eng::extract(v_b_u2e_pos, 1);
    const float v_t_12 = (v_t_11 * v_b_u2e_mass);
    eng::atomic_add(v_s_u2e_energy.at(0), v_t_12);
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_s_u2e_bodies_u2e_pos = eng::arg<eng::array_t<eng::vec_t<3,float>,1,FLAT>>(args, 0);
    auto v_s_u2e_bodies_u2e_mass = eng::arg<eng::array_t<float,1,FLAT>>(args, 24);
    auto v_s_u2e_gravity = eng::arg<eng::vec_t<3,float>>(args, 48);
    auto v_s_u2e_energy = eng::arg<eng::array_t<float,1,FLAT>>(args, 64);
    auto v_out_u2e_pos = eng::arg<eng::array_t<eng::vec_t<3,float>,1,FLAT>>(args, 88);
    auto v_out_u2e_mass = eng::arg<eng::array_t<float,1,FLAT>>(args, 112);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t k = begin; k < end; ++k) { thread<FLAT>(v_s_u2e_bodies_u2e_pos, v_s_u2e_bodies_u2e_mass, v_s_u2e_gravity, v_s_u2e_energy, v_out_u2e_pos, v_out_u2e_mass, k); }
}
}
ENG_EXPORT void primal(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, true, 0)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<eng::vec_t<3,float>,1>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 24))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 64))
        && eng::is_flat(eng::arg<eng::array_t<eng::vec_t<3,float>,1>>(args, 88))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 112));
    if (flat) ns_primal::run<true>(args, L);
    else ns_primal::run<false>(args, L);
}

// ---- adjoint
namespace ns_adjoint {
template <bool FLAT>
ENG_INLINE void thread(eng::array_t<eng::vec_t<3,float>,1,FLAT> v_s_u2e_bodies_u2e_pos, eng::array_t<float,1,FLAT> v_s_u2e_bodies_u2e_mass, eng::vec_t<3,float> v_s_u2e_gravity, eng::array_t<float,1,FLAT> v_s_u2e_energy, eng::array_t<eng::vec_t<3,float>,1,FLAT> v_out_u2e_pos, eng::array_t<float,1,FLAT> v_out_u2e_mass, eng::array_t<eng::vec_t<3,float>,1,FLAT> v_adj_s_u2e_bodies_u2e_pos, eng::array_t<float,1,FLAT> v_adj_s_u2e_bodies_u2e_mass, eng::array_t<float,1,FLAT> v_adj_s_u2e_energy, eng::array_t<eng::vec_t<3,float>,1,FLAT> v_adj_out_u2e_pos, eng::array_t<float,1,FLAT> v_adj_out_u2e_mass, int64_t k) {
    eng::vec_t<3,float> v_result{};
    float v_result_1{};
    bool v_go{};
    float v_adj_result{};
    eng::vec_t<3,float> v_adj_result_1{};
    float v_adj_t_8{};
    eng::vec_t<3,float> v_adj_t_9{};
    float v_adj_t_10{};
    eng::vec_t<3,float> v_adj_t_11{};
    const int32_t v_i = int32_t(k);
    eng::vec_t<3,float> v_t_1 = v_s_u2e_bodies_u2e_pos.at(k);
    const float v_t_2 = v_s_u2e_bodies_u2e_mass.at(k);
    eng::vec_t<3,float> v_t_3 = v_s_u2e_bodies_u2e_pos.at(0);
    const float v_t_4 = v_s_u2e_bodies_u2e_mass.at(0);
    v_result = eng::vec_t<3,float>{{0.0f, 0.0f, 0.0f}};
    v_result_1 = 0.0f;
    v_go = true;
    const bool v_t = (v_t_2 > v_t_4);
    if (v_t) {
        v_result = v_t_1;
        v_result_1 = v_t_2;
        v_go = false;
    }
    const bool v_t_13 = v_go;
    if (v_t_13) {
        v_result = v_t_3;
        v_result_1 = v_t_4;
    }
    eng::vec_t<3,float> v_t_5 = v_result;
    const float v_t_6 = v_result_1;
    eng::vec_t<3,float> v_t_7 = eng::scale(v_s_u2e_gravity, v_t_6);
    eng::vec_t<3,float> v_t_8 = (v_t_5 + v_t_7);
    const float v_t_11 = eng::extract(v_t_8, 1);
    const float v_ct = v_adj_s_u2e_energy.at(0);
    const float v_t_15 = (v_ct * v_t_6);
    const float v_t_16 = (v_ct * v_t_11);
    eng::vec_t<3,float> v_t_21 = eng::insert(eng::vec_t<3,float>{{0.0f, 0.0f, 0.0f}}, 1, v_t_15);
    const float v_ct_3 = v_adj_out_u2e_mass.at(k);
    v_adj_out_u2e_mass.at(k) = 0.0f;
    const float v_t_23 = (v_ct_3 * 2.0f);
    eng::atomic_add(v_adj_out_u2e_mass.at(k), v_t_23);
    const float v_ct_6 = v_adj_out_u2e_mass.at(k);
    v_adj_out_u2e_mass.at(k) = 0.0f;
    const float v_t_26 = (v_t_16 + v_ct_6);
    eng::vec_t<3,float> v_ct_7 = v_adj_out_u2e_pos.at(k);
    v_adj_out_u2e_pos.at(k) = eng::vec_t<3,float>{{0.0f, 0.0f, 0.0f}};
    eng::vec_t<3,float> v_t_27 = (v_t_21 + v_ct_7);
    const float v_t_31 = eng::dot(v_t_27, v_s_u2e_gravity);
    const float v_t_32 = (v_t_26 + v_t_31);
    v_adj_result = v_t_32;
    v_adj_result_1 = v_t_27;
    if (v_t_13) {
        v_adj_result = 0.0f;
        v_adj_t_8 = v_t_32;
        v_adj_result_1 = eng::vec_t<3,float>{{0.0f, 0.0f, 0.0f}};
        v_adj_t_9 = v_t_27;
    }
    if (v_t) {
        const float v_ct_14 = v_adj_result;
        v_adj_t_10 = v_ct_14;
        eng::vec_t<3,float> v_ct_15 = v_adj_result_1;
        v_adj_t_11 = v_ct_15;
    }
    const float v_ct_18 = v_adj_t_8;
    eng::atomic_add(v_adj_s_u2e_bodies_u2e_mass.at(0), v_ct_18);
    eng::vec_t<3,float> v_ct_19 = v_adj_t_9;
    eng::atomic_add(v_adj_s_u2e_bodies_u2e_pos.at(0), v_ct_19);
    const float v_ct_20 = v_adj_t_10;
    eng::atomic_add(v_adj_s_u2e_bodies_u2e_mass.at(k), v_ct_20);
    eng::vec_t<3,float> v_ct_21 = v_adj_t_11;
    eng::atomic_add(v_adj_s_u2e_bodies_u2e_pos.at(k), v_ct_21);
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_s_u2e_bodies_u2e_pos = eng::arg<eng::array_t<eng::vec_t<3,float>,1,FLAT>>(args, 0);
    auto v_s_u2e_bodies_u2e_mass = eng::arg<eng::array_t<float,1,FLAT>>(args, 24);
    auto v_s_u2e_gravity = eng::arg<eng::vec_t<3,float>>(args, 48);
    auto v_s_u2e_energy = eng::arg<eng::array_t<float,1,FLAT>>(args, 64);
    auto v_out_u2e_pos = eng::arg<eng::array_t<eng::vec_t<3,float>,1,FLAT>>(args, 88);
    auto v_out_u2e_mass = eng::arg<eng::array_t<float,1,FLAT>>(args, 112);
    auto v_adj_s_u2e_bodies_u2e_pos = eng::arg<eng::array_t<eng::vec_t<3,float>,1,FLAT>>(args, 136);
    auto v_adj_s_u2e_bodies_u2e_mass = eng::arg<eng::array_t<float,1,FLAT>>(args, 160);
    auto v_adj_s_u2e_energy = eng::arg<eng::array_t<float,1,FLAT>>(args, 184);
    auto v_adj_out_u2e_pos = eng::arg<eng::array_t<eng::vec_t<3,float>,1,FLAT>>(args, 208);
    auto v_adj_out_u2e_mass = eng::arg<eng::array_t<float,1,FLAT>>(args, 232);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t k = end - 1; k >= begin; --k) { thread<FLAT>(v_s_u2e_bodies_u2e_pos, v_s_u2e_bodies_u2e_mass, v_s_u2e_gravity, v_s_u2e_energy, v_out_u2e_pos, v_out_u2e_mass, v_adj_s_u2e_bodies_u2e_pos, v_adj_s_u2e_bodies_u2e_mass, v_adj_s_u2e_energy, v_adj_out_u2e_pos, v_adj_out_u2e_mass, k); }
}
}
ENG_EXPORT void adjoint(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, true, 0)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<eng::vec_t<3,float>,1>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 24))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 64))
        && eng::is_flat(eng::arg<eng::array_t<eng::vec_t<3,float>,1>>(args, 88))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 112))
        && eng::is_flat(eng::arg<eng::array_t<eng::vec_t<3,float>,1>>(args, 136))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 160))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 184))
        && eng::is_flat(eng::arg<eng::array_t<eng::vec_t<3,float>,1>>(args, 208))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 232));
    if (flat) ns_adjoint::run<true>(args, L);
    else ns_adjoint::run<false>(args, L);
}

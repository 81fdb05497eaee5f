// ---- primal
namespace ns_primal {
template <class A_x, class A_factor>
static __device__ inline void thread(A_x v_x, A_factor v_factor, int64_t k0) {
    const int32_t v_i = int32_t(k0);
    const float v_t_1 = v_x.at(k0);
    const float v_t_2 = v_factor.at(k0);
    const float v_t_3 = (v_t_1 * v_t_2);
    v_x.at(k0) = v_t_3;
}
static __device__ inline void run(const unsigned char* args, const eng_launch& L) {
    const auto v_x = eng::arg<eng::array_t<float,1>>(args, 0);
    const auto v_factor = eng::arg<eng::array_t<float,1>>(args, 24);
    const int64_t step = eng::lanes();
    _Pragma("unroll 1")
    for (int64_t k = L.begin + eng::lane(); k < L.end; k += step) {
        int64_t c[1];
        eng::coordinates<1>(L, k, c);
        const int64_t k0 = c[0];
        thread(v_x, v_factor, k0);
    }
}
}
extern "C" __global__ void primal(const __grid_constant__ eng::block_t<48> args,
    const __grid_constant__ eng_launch L) {
    if (!eng::fits(L, false, 1)) return;
    ns_primal::run(args.bytes, L);
}

// ---- recorded
namespace ns_recorded {
template <class A_x, class A_factor>
static __device__ inline void thread(eng::ctx_t& ctx, A_x v_x, A_factor v_factor, int64_t k0) {
    const int32_t v_i = int32_t(k0);
    const float v_t_1 = v_x.at(k0);
    if (!eng::journal_write(ctx, v_t_1)) return;
    const float v_t_2 = v_factor.at(k0);
    const float v_t_3 = (v_t_1 * v_t_2);
    v_x.at(k0) = v_t_3;
}
static __device__ inline void run(const unsigned char* args, const eng_launch& L) {
    const auto v_x = eng::arg<eng::array_t<float,1>>(args, 0);
    const auto v_factor = eng::arg<eng::array_t<float,1>>(args, 24);
    alignas(8) unsigned char saved[8];
    const eng::stack_t stack = eng::stack_at(saved, 0);
    const int64_t step = eng::lanes();
    _Pragma("unroll 1")
    for (int64_t k = L.begin + eng::lane(); k < L.end; k += step) {
        if (eng::skips(L, k)) continue;
        eng::ctx_t ctx = eng::enter<false>(L, k, stack);
        int64_t c[1];
        eng::coordinates<1>(L, k, c);
        const int64_t k0 = c[0];
        thread(ctx, v_x, v_factor, k0);
        eng::leave<true>(L, k, ctx);
    }
}
}
extern "C" __global__ void recorded(const __grid_constant__ eng::block_t<48> args,
    const __grid_constant__ eng_launch L) {
    if (!eng::fits(L, false, 1)) return;
    ns_recorded::run(args.bytes, L);
}

// ---- adjoint
namespace ns_adjoint {
template <class A_x, class A_factor, class A_adj_x, class A_adj_factor>
static __device__ inline void thread(eng::ctx_t& ctx, A_x v_x, A_factor v_factor, A_adj_x v_adj_x, A_adj_factor v_adj_factor, int64_t k0) {
    const int32_t v_i = int32_t(k0);
    const float v_t_1 = eng::journal_read<float>(ctx, int64_t(0ll));
    const float v_t_2 = v_factor.at(k0);
    const float v_ct = v_adj_x.at(k0);
    v_adj_x.at(k0) = eng::cleared(v_ct);
    const float v_t_5 = (v_ct * v_t_2);
    const float v_t_6 = (v_ct * v_t_1);
    eng::atomic_add(v_adj_factor, v_adj_factor.at(k0), v_t_6);
    eng::atomic_add(v_adj_x, v_adj_x.at(k0), v_t_5);
}
static __device__ inline void run(const unsigned char* args, const eng_launch& L) {
    const auto v_x = eng::arg<eng::array_t<float,1>>(args, 0);
    const auto v_factor = eng::arg<eng::array_t<float,1>>(args, 24);
    const auto v_adj_x = eng::arg<eng::array_t<float,1>>(args, 48);
    const auto v_adj_factor = eng::arg<eng::array_t<float,1>>(args, 72);
    alignas(8) unsigned char saved[8];
    const eng::stack_t stack = eng::stack_at(saved, 0);
    const int64_t step = eng::lanes();
    _Pragma("unroll 1")
    for (int64_t k = L.end - 1 - eng::lane(); k >= L.begin; k -= step) {
        if (eng::skips(L, k)) continue;
        eng::ctx_t ctx = eng::enter<true>(L, k, stack);
        int64_t c[1];
        eng::coordinates<1>(L, k, c);
        const int64_t k0 = c[0];
        thread(ctx, v_x, v_factor, v_adj_x, v_adj_factor, k0);
        eng::leave<false>(L, k, ctx);
    }
}
}
extern "C" __global__ void adjoint(const __grid_constant__ eng::block_t<96> args,
    const __grid_constant__ eng_launch L) {
    if (!eng::fits(L, false, 1)) return;
    ns_adjoint::run(args.bytes, L);
}

// Tells the winners of `winners.h`, once all updates are done: their slots get what every number
// beats; those that replaced nothing, what none does.
#pragma once
#include "launch.h"

struct eng_crowns {
    const uint64_t* claims;
    int64_t count;
    uint64_t beaten;  // what every number beats, in its low bytes, as the others
    uint64_t least;
    uint64_t greatest;
};

namespace eng {

template <class W> ENG_INLINE void crown(const eng_crowns& c) {
    const int64_t step = lanes();
    for (int64_t k = lane(); k < c.count; k += step) {
        const uint64_t claim = c.claims[k];
        if (!claim) continue;
        const uint64_t unbeaten = claim & GREATEST ? c.greatest : c.least;
        *reinterpret_cast<W*>(claim & SLOT) = W(claim & REPLACED ? c.beaten : unbeaten);
    }
}

}  // namespace eng

extern "C" __global__ void eng_crown_2(const __grid_constant__ eng_crowns c) {
    eng::crown<uint16_t>(c);
}
extern "C" __global__ void eng_crown_4(const __grid_constant__ eng_crowns c) {
    eng::crown<uint32_t>(c);
}
extern "C" __global__ void eng_crown_8(const __grid_constant__ eng_crowns c) {
    eng::crown<uint64_t>(c);
}

#pragma once
#include "trig.h"

namespace eng {
namespace vm {
ENG_TRIG(tan)
}  // namespace vm
}  // namespace eng

#pragma once
#include "trig.h"

namespace eng {
namespace vm {
ENG_TRIG64(cos64)
}  // namespace vm
}  // namespace eng

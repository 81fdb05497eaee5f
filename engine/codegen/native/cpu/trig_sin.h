#pragma once
#include "trig.h"

namespace eng {
namespace vm {
ENG_TRIG(sin)
}  // namespace vm
}  // namespace eng

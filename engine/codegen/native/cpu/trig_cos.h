#pragma once
#include "trig.h"

namespace eng {
namespace vm {
ENG_TRIG(cos)
}  // namespace vm
}  // namespace eng

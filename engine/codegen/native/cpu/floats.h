// Functions of float32: the engine's own, of which compilers make vectors, or the C library's.
#pragma once
#include "vmath.h"

#if defined(ENG_PRECISE)  // config.precise_math
#define ENG_FLOAT(name) ENG_LIB(name##f)
#else
#define ENG_FLOAT(name) vm::name
#endif

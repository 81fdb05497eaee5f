// Functions of real numbers: the engine's own, of which compilers make vectors, or the C library's.
#pragma once
#include "vmath64.h"

#if defined(ENG_PRECISE)  // config.precise_math
#define ENG_FLOAT(name) ENG_LIB(name##f)
#define ENG_DOUBLE(name) ENG_LIB(name)
#else
#define ENG_FLOAT(name) vm::name
#define ENG_DOUBLE(name) vm::name
#endif

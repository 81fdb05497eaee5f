// Functions of real numbers: the device's.
#pragma once
#include "scalar.h"

#define ENG_FLOAT(name) ENG_LIB(name##f)
#define ENG_DOUBLE(name) ENG_LIB(name)

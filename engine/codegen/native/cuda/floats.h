// Functions of float32: the device's.
#pragma once
#include "scalar.h"

#define ENG_FLOAT(name) ENG_LIB(name##f)

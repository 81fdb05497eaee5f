// The C library's functions for native snippets, by the names that they have there.
#pragma once
#include <cmath>
#define ENG_STD std

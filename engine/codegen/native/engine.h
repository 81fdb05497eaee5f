// Everything that generated kernels use.
#pragma once
#include "common.h"
#include "decompose.h"

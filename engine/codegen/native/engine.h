// Everything that generated kernels use.
#pragma once
#include "array.h"
#include "atomic.h"
#include "context.h"
#include "launch.h"
#include "mat.h"
#include "math.h"
#include "scalar.h"
#include "solve.h"
#include "vec.h"

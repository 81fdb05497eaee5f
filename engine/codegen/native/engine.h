// Everything that generated kernels use.
#pragma once
#include "array.h"
#include "atomic.h"
#include "bits.h"
#include "context.h"
#include "decompose.h"
#include "launch.h"
#include "mat.h"
#include "math.h"
#include "quantile.h"
#include "scalar.h"
#include "solve.h"
#include "vec.h"

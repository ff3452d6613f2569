// The constants of a row normalization's program, and what each may be. Included first by every .cu
// of the family.
//
//   DTYPE                  element type of every tensor
//   ROW_SIZE               elements of a row
//   EPS                    added to the variance
//   VEC                    elements of an access
//   THREADS                threads of a block
//   EARLY                  kiln::norm::Early, when what multiplies the result is loaded
//   LOAD_HINT, STORE_HINT  kiln::Hint of x (and residual), and of what is written
//   HAS_WEIGHT, HAS_BIAS   forms with weight and bias; 0 where the form has none
#pragma once

#include "kernel_sources/device/dtype.cuh"

#ifndef HAS_WEIGHT
#define HAS_WEIGHT 0
#endif
#ifndef HAS_BIAS
#define HAS_BIAS 0
#endif
#ifndef BLOCKS_PER_SM
#define BLOCKS_PER_SM 1
#endif

static_assert(ROW_SIZE >= 1, "a row has at least one element");
static_assert(VEC >= 1 && VEC * sizeof(DTYPE) <= 16 && (VEC & (VEC - 1)) == 0,
              "an access moves up to 16 bytes");
static_assert(ROW_SIZE % VEC == 0, "an access never crosses the end of a row");
static_assert(THREADS >= 32 && THREADS <= 1024 && THREADS % 32 == 0,
              "a block has 1 to 32 whole warps");
static_assert(LOAD_HINT >= 0 && LOAD_HINT <= 3, "kiln::Hint has four values");
static_assert(STORE_HINT >= 0 && STORE_HINT <= 2, "results are not held");
static_assert(EARLY >= 0 && EARLY <= 2, "kiln::norm::Early has three values");
static_assert(HAS_WEIGHT == 0 || HAS_WEIGHT == 1, "HAS_WEIGHT is a choice");
static_assert(HAS_BIAS == 0 || HAS_BIAS == 1, "HAS_BIAS is a choice");
static_assert(EPS >= 0.0, "the epsilon is not negative");
static_assert(BLOCKS_PER_SM >= 1 && BLOCKS_PER_SM <= 32,
              "blocks that one multiprocessor is to hold at once");

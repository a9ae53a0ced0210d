#include "kernels.h"
#ifdef HAS_TILES
#define DOT_BFLOAT
#define TILED
#include "vector_avx512.h"

#include "tiles.h"

#include "instruction_set.h"

const struct operations tis_amx[2] = ALL_OPERATIONS;
#endif

/* The levels below `amx`, left out of a library for tests of that one alone. */
#include "kernels.h"

const struct operations tis_scalar[2], tis_avx2[2], tis_avx512[2], tis_avx512_bf16[2];

#ifdef __x86_64__
#define DOT_BFLOAT
#include "vector_avx512.h"

#include "instruction_set.h"

const struct operations tis_avx512_bf16[2] = ALL_OPERATIONS;
#endif

#ifdef __x86_64__
#include "vector_avx512.h"

#include "instruction_set.h"

const struct operations tis_avx512[2] = ALL_OPERATIONS;
#endif

#ifdef __x86_64__
#include "vector_avx2.h"

#include "instruction_set.h"

const struct operations tis_avx2[2] = ALL_OPERATIONS;
#endif

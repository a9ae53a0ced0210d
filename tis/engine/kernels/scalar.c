#include "vector_scalar.h"

#include "instruction_set.h"

const struct operations tis_scalar[2] = ALL_OPERATIONS;

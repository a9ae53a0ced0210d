#include "vector_scalar.h"

#include "instruction_set.h"

const struct operations tis_scalar[2] = {OPERATIONS(float), OPERATIONS(bfloat)};

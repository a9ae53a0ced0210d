/* The operations of one instruction set, for both element types: the includer has chosen the vector. */
#include "kernels.h"
#include "vector_math.h"

#define E float
#define IS_BFLOAT 0
#define LOAD v_load_float
#define STORE v_store_float
#define NAME(name) float_##name
#include "small_operations.h"
#include "attention.h"
#include "product.h"
#undef E
#undef IS_BFLOAT
#undef LOAD
#undef STORE
#undef NAME

#define E uint16_t
#define IS_BFLOAT 1
#define LOAD v_load_bfloat
#define STORE v_store_bfloat
#define NAME(name) bfloat_##name
#include "small_operations.h"
#include "attention.h"
#include "product.h"

#define OPERATIONS(type) \
  { type##_WIDTH, type##_STEP_INPUTS, type##_multiply_block, type##_add, type##_rms_norm, type##_silu_mul, type##_rotary, type##_attend_few, type##_attend_tile }

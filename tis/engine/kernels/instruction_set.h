/* The operations of one instruction set, for both element types: the includer has chosen the vector.

   E is the type of numbers, NAME the names of its operations. CACHED is the type of keys and values, either E or integers
   with scales. WEIGHT is the type of weights, P the names of products of both types. */
#include "kernels.h"
#include "vector_math.h"

#include "gelu.h"

#define E float
#define IS_BFLOAT 0
#define LOAD v_load_float
#define STORE v_store_float
#define NAME(name) float_##name
#define CACHED float
#define HAS_8_BITS 0
#include "small_operations.h"
#include "attention.h"
#include "attention_few.h"
#include "attention_tile.h"
#undef NAME
#undef CACHED
#undef HAS_8_BITS

#define NAME(name) float_of_int8_##name
#define CACHED int8_t
#define HAS_8_BITS 1
#include "attention.h"
#include "attention_few.h"
#include "attention_tile.h"
#undef NAME
#define NAME(name) float_##name

#define WEIGHT float
#define HAS_BFLOAT_WEIGHTS 0
#define P(name) float_by_float_##name
#include "product.h"
#undef WEIGHT
#undef HAS_BFLOAT_WEIGHTS
#undef P

#define WEIGHT uint16_t
#define HAS_BFLOAT_WEIGHTS 1
#define P(name) float_by_bfloat_##name
#include "product.h"
#undef E
#undef IS_BFLOAT
#undef LOAD
#undef STORE
#undef NAME
#undef CACHED
#undef HAS_8_BITS
#undef P
/* WEIGHT stays: rows of bfloat16 have weights of bfloat16. */

#define E uint16_t
#define IS_BFLOAT 1
#define LOAD v_load_bfloat
#define STORE v_store_bfloat
#define NAME(name) bfloat_##name
#define CACHED uint16_t
#define HAS_8_BITS 0
#include "small_operations.h"
#include "attention.h"
#include "attention_few.h"
#include "attention_tile.h"
#undef NAME
#undef CACHED
#undef HAS_8_BITS

#define NAME(name) bfloat_of_int8_##name
#define CACHED int8_t
#define HAS_8_BITS 1
#include "attention.h"
#include "attention_few.h"
#include "attention_tile.h"
#undef NAME
#define NAME(name) bfloat_##name

#define P(name) bfloat_by_bfloat_##name
#include "product.h"

#define PRODUCT(types) {types##_WIDTH, types##_STEP_INPUTS, types##_ROWS, types##_multiply_block}
#define OPERATIONS(type, ...)                                                                                     \
  {{__VA_ARGS__},  type##_add,    type##_mix,       type##_rms_norm, type##_silu_mul,                             \
   type##_rotary,  type##_round_row,                                                                              \
   {{type##_attend_few, type##_attend_tile}, {type##_of_int8_attend_few, type##_of_int8_attend_tile}}}
#define ALL_OPERATIONS                                                          \
  {OPERATIONS(float, PRODUCT(float_by_float), PRODUCT(float_by_bfloat)),        \
   OPERATIONS(bfloat, {0, 0, 0, 0}, PRODUCT(bfloat_by_bfloat))}

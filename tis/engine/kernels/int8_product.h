/* Rows times 8-bit weights: first every row is rounded, then every block of weights multiplied. */
#ifndef TIS_INT8_PRODUCT_H
#define TIS_INT8_PRODUCT_H

#include <stdint.h>

enum { NONE = 0, AVX2 = 1, VNNI = 2 };
/* Inputs that are multiplied at once; below so many rows of a step, rows are rounded to 16 bits. */
enum { GROUP = 4, MIN_ROWS_FOR_8_BITS = 64 };

struct int8_product {
  const void *x; /* [rows, inputs] */
  const int8_t *weights; /* [block of outputs][group of 4 inputs][output][input] */
  const float *scales; /* [outputs], as `sums` and `bias`, padded to whole blocks */
  const int32_t *sums; /* of the integers of an output */
  const float *bias;   /* or NULL */
  void *out;           /* [rows, outputs] */
  uint8_t *integers;   /* scratch: 2 * groups * 4 bytes for each row, aligned to 64 */
  float *row_scales;   /* scratch: one for each row */
  int64_t rows, row_stride, inputs, outputs, groups, is_bfloat, bits, threads, level;
};

void int8_round_row(const struct int8_product *p, int64_t row);
int64_t int8_width(int64_t level); /* outputs of a block */
int64_t int8_row_bytes(const struct int8_product *p);
void int8_multiply_block(const struct int8_product *p, int64_t block);
/* `next` counts the blocks that threads have taken. */
void int8_multiply_parts(const struct int8_product *p, int64_t *next);

#endif

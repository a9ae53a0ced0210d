/* Rows times weights of 8 or 4 bits: first every row is rounded to integers, then every block of weights multiplied. */
#ifndef TIS_INTEGER_PRODUCT_H
#define TIS_INTEGER_PRODUCT_H

#include <stdint.h>

/* Of the weights, and with which instructions they are multiplied. */
enum {
  NONE = 0,
  INT8_AVX2 = 1,
  INT8_VNNI = 2,
  INT8_AMX = 3,
  INT4_PLAIN = 4,
  INT4_AVX2 = 5,
  INT4_VNNI = 6,
  INT8_SPANS_AVX2 = 7, /* see int8_spans.h */
  INT8_SPANS_VNNI = 8,
  INT6_AVX2 = 9,
  INT6_VNNI = 10,
  K_QUANTS_AVX2 = 11, /* see k_quants.h */
  K_QUANTS_VNNI = 12,
  K_MINIMA_AVX2 = 13,
  K_MINIMA_VNNI = 14,
  OFFSETS6_AVX2 = 15, /* see int8_spans.h */
  OFFSETS6_VNNI = 16,
  OFFSETS8_AVX2 = 17,
  OFFSETS8_VNNI = 18
};
/* Of 8-bit weights so many inputs are multiplied at once; below so many rows of a step, rows are rounded to 16 bits. */
enum { GROUP = 4, MIN_ROWS_FOR_8_BITS = 64 };

struct integer_product {
  const void *x; /* [rows, inputs] */
  const void *weights; /* 8 bits: [block of outputs][group of 4 inputs][output][input]; else see where they are multiplied */
  const float *scales; /* [outputs], as `sums` and `bias`, padded to whole blocks; with `group` [block][group][output] */
  const int32_t *sums; /* of the integers of an output; only of 8 bits without `group` */
  const float *bias;   /* or NULL */
  void *out;           /* [rows, outputs] */
  uint8_t *integers;   /* scratch: `integers_of_row` of integer_product.py for each row, aligned to 64 */
  float *row_scales;   /* scratch: one for each row */
  int64_t rows, row_stride, inputs, outputs, is_bfloat, bits, threads, level; /* `bits` of rows with 8-bit weights */
  /* Of weights that keep the scales of a file: inputs with a scale, a multiple of 32. 0: they do not. */
  int64_t group;
  const int32_t *order; /* [inputs]: where the input of each weight lies in a row; or NULL: there. Only with `group` */
};

void integer_round_row(const struct integer_product *p, int64_t row);
int64_t integer_width(int64_t level); /* outputs of a block */
int64_t integer_row_bytes(const struct integer_product *p);
int64_t integer_block_bytes(const struct integer_product *p);
void integer_multiply_block(const struct integer_product *p, int64_t block);
/* `next` counts the parts that threads have taken: blocks, or some rows of a block. */
void integer_multiply_parts(const struct integer_product *p, int64_t *next);

/* One kind of weights. */
void int8_round_row(const struct integer_product *p, int64_t row);
int64_t int8_row_bytes(const struct integer_product *p);
int64_t int8_block_bytes(const struct integer_product *p);
void int8_multiply_block(const struct integer_product *p, int64_t block);
int64_t int8_groups(const struct integer_product *p); /* of 4 inputs: those of a row and of a block, with padding */
int64_t int8_plane_bytes(const struct integer_product *p); /* from one plane of bytes of a row to the next */
void int8_multiply_by_tiles(const struct integer_product *p, int64_t block);
/* Sums of bytes become numbers of the result: of so many planes, from `first`, with 64 outputs from `output`. */
void int8_finish(const struct integer_product *p, int64_t output, int64_t first, int planes, const int32_t sums[][64]);
void int4_round_row(const struct integer_product *p, int64_t row);
int64_t int4_row_bytes(const struct integer_product *p);
int64_t int4_block_bytes(const struct integer_product *p);
void int4_multiply_block(const struct integer_product *p, int64_t block);
void int8_spans_round_row(const struct integer_product *p, int64_t row);
int64_t int8_spans_row_bytes(const struct integer_product *p);
int64_t int8_spans_block_bytes(const struct integer_product *p);
void int8_spans_multiply_block(const struct integer_product *p, int64_t block);
void k_quants_round_row(const struct integer_product *p, int64_t row);
int64_t k_quants_row_bytes(const struct integer_product *p);
int64_t k_quants_block_bytes(const struct integer_product *p);
void k_quants_multiply_block(const struct integer_product *p, int64_t block);

#endif

/* Rows of an integer product: as numbers, a piece at a time, and their results. */
#ifndef TIS_INTEGER_ROWS_H
#define TIS_INTEGER_ROWS_H

#include <math.h>
#include <string.h>

#include "integer_product.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

enum { MAX_WIDTH = 64, MAX_LOADED = 32 };

/* `count` inputs of a row from `first`, at most MAX_LOADED, in the order of the weights. */
ALWAYS_INLINE void integer_load_row(const struct integer_product *p, int64_t row, int64_t first, int64_t count, float *numbers) {
  if (p->order) {
    for (int64_t i = 0; i < count; i++) {
      const int64_t at = row * p->row_stride + p->order[first + i];
      const uint32_t bits = p->is_bfloat ? (uint32_t)((const uint16_t *)p->x)[at] << 16 : ((const uint32_t *)p->x)[at];
      memcpy(numbers + i, &bits, 4);
    }
  } else if (p->is_bfloat) {
    const uint16_t *from = (const uint16_t *)p->x + row * p->row_stride + first;
    uint32_t bits[MAX_LOADED] = {0};
    for (int64_t i = 0; i < count; i++) bits[i] = (uint32_t)from[i] << 16;
    memcpy(numbers, bits, sizeof bits);
  } else {
    memcpy(numbers, (const float *)p->x + row * p->row_stride + first, count * sizeof(float));
  }
}

/* `width` is that of a block, and a constant, so that all outputs are computed in vectors. */
ALWAYS_INLINE void integer_finish_row(const struct integer_product *p, int64_t block, int64_t row, const float *totals,
                                      const int width) {
  const int64_t first = block * width, left = p->outputs - first, count = left < width ? left : width;
  const float *scales = p->scales + first, *bias = p->bias ? p->bias + first : NULL;
#define COPY(to, from) /* a whole block in vectors */ \
  if (count == width)                                  \
    memcpy(to, from, width * sizeof *(from));          \
  else                                                 \
    memcpy(to, from, count * sizeof *(from));
  float values[MAX_WIDTH] __attribute__((aligned(64)));
  if (p->group)
    for (int i = 0; i < width; i++) values[i] = bias ? totals[i] + bias[i] : totals[i];
  else if (bias)
    for (int i = 0; i < width; i++) values[i] = fmaf(totals[i], scales[i], bias[i]);
  else
    for (int i = 0; i < width; i++) values[i] = totals[i] * scales[i];
  if (!p->is_bfloat) {
    COPY((float *)p->out + row * p->outputs + first, values);
    return;
  }
  uint32_t bits[MAX_WIDTH] __attribute__((aligned(64)));
  uint16_t rounded[MAX_WIDTH] __attribute__((aligned(64)));
  memcpy(bits, values, width * sizeof(float));
  for (int i = 0; i < width; i++)
    rounded[i] = (uint16_t)((bits[i] & 0x7fffffff) > 0x7f800000 ? 0x7fc0 : (bits[i] + 0x7fff + (bits[i] >> 16 & 1)) >> 16);
  COPY((uint16_t *)p->out + row * p->outputs + first, rounded);
#undef COPY
}

#endif

/* Rows of float32 or bfloat16, multiplied with k-quants as GGUF files have them: Q4_K, Q5_K and Q6_K.

   A super-block is 256 inputs of an output: weight = d * scale * number - least * minimum. 16 inputs share a scale of 8 bits
   with a sign, 32 a minimum, which Q6_K lacks. Numbers have a sign, too, so that 6 bits do for all. Blocks of outputs lie as
   [block][super-block]: scales [16][output]; if one of the outputs has minima, those [8][output] and `least` [output];
   then numbers, to which 32 is added, in the order of int8_spans.h. `scales` are `d`, [block][super-block][output].

   32 inputs of a row are rounded to 15 bits with a power of two of their own. Scales times numbers have 13 bits, so a sum of
   32 products is an integer of 32 bits, exact; then a few operations with numbers, which all levels do alike: a row has the
   same bits beside any others. Rows that are multiplied at once share the work of unpacking. */
#ifndef TIS_K_QUANTS_H
#define TIS_K_QUANTS_H

#include "integer_rows.h"

enum { SUPER_BLOCK = 256, SCALED = 16, ROUNDED = 32, CHUNK = 128, MAX_ROWS = 96, ROWS = 6, MIDDLE = 32, FETCHED = 6144 };

/* Of 32 inputs of a row. */
struct rounded {
  float power;       /* of two */
  float sum;         /* of the integers, times the power */
  int32_t middle[2]; /* of 16 each: 32 times their sum */
};

static inline int has_minima(int64_t level) { return level == K_MINIMA_AVX2 || level == K_MINIMA_VNNI; }

/* The largest is from 8,192 to 16,383. Of four, the second and the third change places, as weights are unpacked so. Numbers that are tiny
   or none: no integers. */
ALWAYS_INLINE struct rounded round_numbers(const float *numbers, int16_t *to) {
  uint32_t largest = 0;
  for (int i = 0; i < ROUNDED; i++) {
    uint32_t bits;
    memcpy(&bits, numbers + i, 4);
    bits &= 0x7fffffff;
    largest = bits > largest ? bits : largest;
  }
  int32_t exponent = (int32_t)(largest >> 23); /* the largest is in [2^(exponent - 127), twice that) */
  if ((largest & 0x7fffff) >= 0x7ffe00) exponent++;
  if (exponent < 32 || largest >= 0x7f800000) {
    memset(to, 0, ROUNDED * sizeof *to);
    return (struct rounded){largest >= 0x7f800000 ? NAN : 0, 0, {0, 0}};
  }
  const uint32_t bits = (uint32_t)(exponent - 13) << 23, inverse_bits = (uint32_t)(267 - exponent) << 23;
  float power, inverse;
  memcpy(&power, &bits, 4);
  memcpy(&inverse, &inverse_bits, 4);
  int32_t integers[ROUNDED], first = 0, second = 0;
  for (int i = 0; i < ROUNDED; i++) integers[i] = (int32_t)rintf(numbers[i] * inverse);
  for (int i = 0; i < SCALED; i++) first += integers[i], second += integers[SCALED + i];
  for (int i = 0; i < ROUNDED; i += GROUP) {
    to[i] = (int16_t)integers[i], to[i + 1] = (int16_t)integers[i + 2];
    to[i + 2] = (int16_t)integers[i + 1], to[i + 3] = (int16_t)integers[i + 3];
  }
  return (struct rounded){power, (float)(first + second) * power, {MIDDLE * first, MIDDLE * second}};
}

ALWAYS_INLINE void round_row(const struct integer_product *p, int64_t row) {
  int16_t *to = (int16_t *)(p->integers + row * k_quants_row_bytes(p));
  struct rounded *of = (struct rounded *)(to + p->inputs);
  for (int64_t first = 0; first < p->inputs; first += ROUNDED, of++) {
    float numbers[ROUNDED];
    integer_load_row(p, row, first, ROUNDED, numbers);
    *of = round_numbers(numbers, to + first);
  }
}

/* Half a super-block of all outputs of a block. */
struct chunk {
  const uint8_t *scales, *minima, *numbers;
  const float *d, *least;
};

ALWAYS_INLINE struct chunk chunk_of(const struct integer_product *p, int64_t block, int64_t number, const int width) {
  const int64_t size = k_quants_block_bytes(p) / (p->inputs / SUPER_BLOCK), super_block = number / 2, half = number % 2;
  const uint8_t *at = (const uint8_t *)p->weights + (block * (p->inputs / SUPER_BLOCK) + super_block) * size;
  struct chunk c = {at + half * width * (CHUNK / SCALED), NULL, NULL, NULL, NULL};
  at += width * (SUPER_BLOCK / SCALED);
  if (has_minima(p->level)) {
    c.minima = at + half * width * (CHUNK / ROUNDED), at += width * (SUPER_BLOCK / ROUNDED);
    c.least = (const float *)at, at += width * sizeof(float);
  }
  c.numbers = at + half * width * (CHUNK * 6 / 8);
  c.d = p->scales + (block * (p->inputs / SUPER_BLOCK) + super_block) * width;
  return c;
}

/* A block of weights. `expand` makes integers of 16 bits of a chunk, two inputs of each output and the next two, which
   `some_rows` multiplies; they stay in the near cache. */
#define MULTIPLY_BLOCK(width, expand, some_rows, one_row)                                               \
  const int64_t row_bytes = k_quants_row_bytes(p);                                                      \
  _Alignas(64) int16_t weights[CHUNK * (width)];                                                        \
  _Alignas(64) float minima[CHUNK / ROUNDED * (width)], totals[MAX_ROWS * (width)];                     \
  for (int64_t first = 0; first < p->rows; first += MAX_ROWS) {                                         \
    const int64_t rows = p->rows - first < MAX_ROWS ? p->rows - first : MAX_ROWS;                       \
    memset(totals, 0, rows * (width) * sizeof *totals);                                                 \
    for (int64_t number = 0; number < p->inputs / CHUNK; number++) {                                    \
      const struct chunk c = chunk_of(p, block, number, width);                                         \
      const uint8_t *x = p->integers + first * row_bytes + number * CHUNK * 2;                          \
      const uint8_t *of_x = p->integers + first * row_bytes + p->inputs * 2 +                           \
                            number * (CHUNK / ROUNDED) * (int64_t)sizeof(struct rounded);               \
      if (p->rows == 1) {                                                                               \
        one_row(&c, minima, x, (const struct rounded *)of_x, totals);                                   \
        continue;                                                                                       \
      }                                                                                                 \
      expand(&c, weights, minima);                                                                      \
      int64_t row = 0;                                                                                  \
      for (; row + ROWS <= rows; row += ROWS) SOME(some_rows, ROWS, width);                             \
      switch (rows - row) {                                                                             \
        case 1: SOME(some_rows, 1, width); break;                                                       \
        case 2: SOME(some_rows, 2, width); break;                                                       \
        case 3: SOME(some_rows, 3, width); break;                                                       \
        case 4: SOME(some_rows, 4, width); break;                                                       \
        case 5: SOME(some_rows, 5, width); break;                                                       \
      }                                                                                                 \
    }                                                                                                   \
    for (int64_t row = 0; row < rows; row++)                                                            \
      integer_finish_row(p, block, first + row, totals + row * (width), width);                         \
  }
#define SOME(some_rows, count, width) \
  some_rows(&c, weights, minima, x + row * row_bytes, of_x + row * row_bytes, row_bytes, totals + row * (width), count)

void k_quants_round_avx2(const struct integer_product *p, int64_t row);
void k_quants_block_avx2(const struct integer_product *p, int64_t block);
void k_quants_round_vnni(const struct integer_product *p, int64_t row);
void k_quants_block_vnni(const struct integer_product *p, int64_t block);

#endif

/* Rows of float32 or bfloat16, multiplied with 8-bit weights of files that give groups of inputs a scale of their own, and
   with 6-bit weights.

   A span is 32, 64, 96 or 128 inputs of an output that share a scale and a zero: weight = scale * (number - zero). Blocks of
   outputs lie as [block][span]: a zero of 8 bits for each output, then four inputs of each output, and the next four;
   `scales` as [block][span][output].

   With offsets instead of zeros, as Q4_1 and Q5_1 of GGUF have them, weight = scale * (number - middle) + offset, where the
   middle is 32 or 128. Scales and offsets have the 16 bits of the file: `scales` are [block][span], halves of all outputs
   and then those of offsets. K-quants have no room for that: theirs are 6 or 8 bits times a number for 256 inputs.

   Each span of a row is rounded to 16 bits with a power of two of its own. What a span adds to an output is a sum of integers,
   exact in 32 bits, and then four operations with numbers that all levels do alike: a row has the same bits beside any others.
   With VNNI, 16 bits are two planes of bytes, `high * 256 + low`, both with a sign.

   Four vectors of 6-bit numbers are three: the last one lies in the upper two bits of the others, the lowest bits first. */
#ifndef TIS_INT8_SPANS_H
#define TIS_INT8_SPANS_H

#include "integer_rows.h"

enum { MAX_SPAN = 128, PIECE = 32 };

/* Of one span of a row. */
struct span_scale {
  float power; /* of two */
  int32_t sum; /* of the integers */
};

static inline int64_t spans_of(const struct integer_product *p) { return (p->inputs + p->group - 1) / p->group; }

/* How weights lie: a constant wherever they are multiplied. */
struct form {
  int has_6_bits, has_offsets;
};

/* What is taken from numbers that have offsets. */
static inline int32_t middle_of(const struct form form) { return form.has_6_bits ? 32 : 128; }

/* The largest is from 16,256 to 32,512, so that it fits into two planes. Numbers that are tiny or none: no integers. */
ALWAYS_INLINE struct span_scale round_span(const float *numbers, int64_t count, int16_t *to) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < count; i++) {
    uint32_t bits;
    memcpy(&bits, numbers + i, 4);
    bits &= 0x7fffffff;
    largest = bits > largest ? bits : largest;
  }
  int32_t exponent = (int32_t)(largest >> 23); /* the largest is in [2^(exponent - 127), twice that) */
  if ((largest & 0x7fffff) >= 0x7e0000) exponent++;
  struct span_scale scale = {largest >= 0x7f800000 ? NAN : 0, 0};
  if (exponent < 32 || largest >= 0x7f800000) {
    memset(to, 0, count * sizeof *to);
    return scale;
  }
  const uint32_t bits = (uint32_t)(exponent - 14) << 23, inverse_bits = (uint32_t)(268 - exponent) << 23;
  float inverse;
  memcpy(&scale.power, &bits, 4);
  memcpy(&inverse, &inverse_bits, 4);
  for (int64_t i = 0; i < count; i++) {
    const int32_t integer = (int32_t)rintf(numbers[i] * inverse);
    to[i] = (int16_t)integer;
    scale.sum += integer;
  }
  return scale;
}

ALWAYS_INLINE void round_spans(const struct integer_product *p, int64_t row, const int has_planes) {
  const int64_t spans = spans_of(p), span = p->group;
  uint8_t *to = p->integers + row * int8_spans_row_bytes(p);
  struct span_scale *scales = (struct span_scale *)(to + 2 * spans * span);
  for (int64_t number = 0; number < spans; number++) {
    const int64_t first = number * span, left = p->inputs - first, count = left < span ? left : span;
    float numbers[MAX_SPAN] = {0};
    int16_t integers[MAX_SPAN];
    for (int64_t at = 0; at < count; at += PIECE)
      integer_load_row(p, row, first + at, count - at < PIECE ? count - at : PIECE, numbers + at);
    scales[number] = round_span(numbers, span, integers);
    if (has_planes)
      for (int64_t at = 0; at < span; at += PIECE)
        for (int i = 0; i < PIECE; i++) {
          const int32_t high = (integers[at + i] + 128) >> 8;
          to[at + i] = (uint8_t)high, to[span + at + i] = (uint8_t)(integers[at + i] - 256 * high);
        }
    else
      memcpy(to, integers, 2 * span);
    to += 2 * span;
  }
}

void int8_spans_round_avx2(const struct integer_product *p, int64_t row);
void int8_spans_block_avx2(const struct integer_product *p, int64_t block);
void int8_spans_round_vnni(const struct integer_product *p, int64_t row);
void int8_spans_block_vnni(const struct integer_product *p, int64_t block);

#endif

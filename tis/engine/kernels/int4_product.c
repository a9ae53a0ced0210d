/* Rows of float32 or bfloat16, multiplied with 4-bit weights.

   32 inputs of an output are a group: weight = scale of the output * (scale of the group * number - 16 * offset of the
   group), where the number has 4 bits, and scale and offset of the group have 8. Blocks of outputs lie as
   [block][group]: a scale for each output, an offset for each, then four times for each output four bytes, which are two
   steps of four inputs: the lower halves are the first step.

   Each 128 inputs of a row are rounded to 8 bits with a scale of their own. What they add to an output is an integer, of 27
   bits at most, that the levels compute each in its way; it is multiplied by the scale of the row and added with one
   rounding. So all levels have the same bits, and a row the same beside any others.

   Weights of files that were saved in 4 bits keep their scales (`group` of integer_product.h): weight = scale * (number -
   zero), where `group` inputs of an output share a scale of 32 bits. Blocks lie as [block][group of 32], with a zero of 8
   bits for each output instead of scale and offset; `scales` as [block][group of inputs][output]. What the inputs of a
   scale add is summed as above, and then multiplied by it and added to the output, with one rounding. */
#include <math.h>
#include <string.h>

#include "integer_product.h"

enum { INT4_GROUP = 32, GROUPS_OF_A_SCALE = 4, INPUTS_OF_A_SCALE = INT4_GROUP * GROUPS_OF_A_SCALE, MAX_WIDTH = 64 };

/* Of the integers of one group of a row. */
struct group_sum {
  int32_t start; /* -8 times their sum: added to products with numbers of 0 to 15, it leaves those with -8 to 7, in 16 bits */
  int32_t high;  /* the sum, in the upper 16 bits */
};

static int64_t int4_groups(const struct integer_product *p) { return (p->inputs + INT4_GROUP - 1) / INT4_GROUP; }

/* The integers of a row, a `group_sum` for each group, and the scales. */
int64_t int4_row_bytes(const struct integer_product *p) {
  const int64_t groups = int4_groups(p), scales = (groups + GROUPS_OF_A_SCALE - 1) / GROUPS_OF_A_SCALE;
  return groups * (INT4_GROUP + (int64_t)sizeof(struct group_sum)) + scales * (int64_t)sizeof(float);
}

int64_t int4_block_bytes(const struct integer_product *p) {
  return int4_groups(p) * integer_width(p->level) * ((p->group ? 1 : 2) + INT4_GROUP / 2);
}

/* Numbers that are tiny have no integers; one that is none makes the scale none. Returns the scale. */
static inline __attribute__((always_inline)) float round_numbers(const float *numbers, int8_t *to) {
  uint32_t largest_bits = 0;
  for (int i = 0; i < INPUTS_OF_A_SCALE; i++) {
    uint32_t bits;
    memcpy(&bits, numbers + i, 4);
    bits &= 0x7fffffff;
    largest_bits = bits > largest_bits ? bits : largest_bits;
  }
  const int is_none = largest_bits >= 0x7f800000;
  float largest;
  memcpy(&largest, &largest_bits, 4);
  if (is_none || largest < 1e-30f) {
    memset(to, 0, INPUTS_OF_A_SCALE);
    return is_none ? NAN : 0;
  }
  const float inverse = 127.0f / largest;
  for (int i = 0; i < INPUTS_OF_A_SCALE; i++) to[i] = (int8_t)(int32_t)rintf(numbers[i] * inverse);
  return largest / 127.0f;
}

static inline __attribute__((always_inline)) void round_row(const struct integer_product *p, int64_t row) {
  const int64_t groups = int4_groups(p);
  int8_t *to = (int8_t *)p->integers + row * int4_row_bytes(p);
  struct group_sum *sums = (struct group_sum *)(to + groups * INT4_GROUP);
  float *scales = (float *)(sums + groups);
  for (int64_t group = 0; group < groups; group += GROUPS_OF_A_SCALE) {
    const int64_t first = group * INT4_GROUP, left = p->inputs - first;
    const int64_t count = left < INPUTS_OF_A_SCALE ? left : INPUTS_OF_A_SCALE;
    float numbers[INPUTS_OF_A_SCALE] = {0};
    if (p->order) {
      for (int64_t i = 0; i < count; i++) {
        const int64_t at = row * p->row_stride + p->order[first + i];
        const uint32_t bits = p->is_bfloat ? (uint32_t)((const uint16_t *)p->x)[at] << 16 : ((const uint32_t *)p->x)[at];
        memcpy(numbers + i, &bits, 4);
      }
    } else if (p->is_bfloat) {
      const uint16_t *from = (const uint16_t *)p->x + row * p->row_stride + first;
      uint32_t bits[INPUTS_OF_A_SCALE] = {0};
      for (int64_t i = 0; i < count; i++) bits[i] = (uint32_t)from[i] << 16;
      memcpy(numbers, bits, sizeof numbers);
    } else {
      memcpy(numbers, (const float *)p->x + row * p->row_stride + first, count * sizeof(float));
    }
    int8_t integers[INPUTS_OF_A_SCALE];
    *scales++ = round_numbers(numbers, integers);
    for (int64_t at = 0; at < GROUPS_OF_A_SCALE && group + at < groups; at++) {
      int32_t sum = 0;
      for (int i = 0; i < INT4_GROUP; i++) sum += integers[at * INT4_GROUP + i];
      memcpy(to + first + at * INT4_GROUP, integers + at * INT4_GROUP, INT4_GROUP);
      sums[group + at] = (struct group_sum){-8 * sum, sum * 65536};
    }
  }
}

/* `width` is that of a block, and a constant, so that all outputs are computed in vectors. */
static inline __attribute__((always_inline)) void finish_row(const struct integer_product *p, int64_t block, int64_t row,
                                                             const float *totals, const int width) {
  const int64_t first = block * width, left = p->outputs - first, count = left < width ? left : width;
  const float *scales = p->scales + first, *bias = p->bias ? p->bias + first : NULL;
  float values[MAX_WIDTH] __attribute__((aligned(64)));
  if (p->group)
    for (int i = 0; i < width; i++) values[i] = bias ? totals[i] + bias[i] : totals[i];
  else if (bias)
    for (int i = 0; i < width; i++) values[i] = fmaf(totals[i], scales[i], bias[i]);
  else
    for (int i = 0; i < width; i++) values[i] = totals[i] * scales[i];
  if (!p->is_bfloat) {
    memcpy((float *)p->out + row * p->outputs + first, values, count * sizeof(float));
    return;
  }
  uint32_t bits[MAX_WIDTH] __attribute__((aligned(64)));
  uint16_t rounded[MAX_WIDTH] __attribute__((aligned(64)));
  memcpy(bits, values, width * sizeof(float));
  for (int i = 0; i < width; i++)
    rounded[i] = (uint16_t)((bits[i] & 0x7fffffff) > 0x7f800000 ? 0x7fc0 : (bits[i] + 0x7fff + (bits[i] >> 16 & 1)) >> 16);
  memcpy((uint16_t *)p->out + row * p->outputs + first, rounded, count * sizeof(uint16_t));
}

#define IN(target) target static inline __attribute__((always_inline))
/* Rows whose sums are kept at once, and how long before its use a weight is fetched. */
enum { ROWS = 4, FETCHED_BYTES = 1 << 12 };
/* What stands before the numbers of 32 inputs. */
enum head { SCALES_AND_OFFSETS, ZEROS };

/* ---- plain C, for tests ---- */
#define NAME(name) plain_##name
#define LANES 8
#define VECTORS 2
#include "int4_plain.h"
#include "int4_rows.h"

#ifdef __x86_64__
#include <immintrin.h>

/* ---- AVX2: pairs of products in 16 bits, which hold those of a group: 16 of at most 15 * 127 ---- */
#define NAME(name) avx2_##name
#define TARGET __attribute__((target("avx2,fma")))
#define LANES 8
#define VECTORS 2
typedef __m256i avx2_sums, avx2_bytes;
typedef struct {
  __m256i scales;  /* of the sums of an output, in 16 bits */
  __m256i offsets; /* in 32 */
} avx2_scales;

IN(TARGET) __m256i avx2_load(const uint8_t *from) { return _mm256_loadu_si256((const __m256i *)from); }
IN(TARGET) __m256i avx2_low(__m256i x) { return _mm256_and_si256(x, _mm256_set1_epi8(15)); }
IN(TARGET) __m256i avx2_high(__m256i x) { return _mm256_and_si256(_mm256_srli_epi16(x, 4), _mm256_set1_epi8(15)); }
IN(TARGET) __m256i avx2_products(__m256i weights, const int8_t *four) {
  int32_t all;
  memcpy(&all, four, 4);
  return _mm256_maddubs_epi16(weights, _mm256_set1_epi32(all));
}
IN(TARGET) __m256i avx2_first(__m256i weights, const int8_t *four, const struct group_sum *x) {
  (void)x;
  return avx2_products(weights, four);
}
IN(TARGET) __m256i avx2_dot(__m256i sums, __m256i weights, const int8_t *four) {
  /* In place, which GCC would not see: it adds in another order, for which it moves sums to memory and back. */
  __asm__("vpaddw %1, %0, %0" : "+x"(sums) : "x"(avx2_products(weights, four)));
  return sums;
}
IN(TARGET) avx2_scales avx2_scales_at(const uint8_t *scales, const uint8_t *offsets) {
  const __m128i once = _mm_loadl_epi64((const __m128i *)scales), sixteens = _mm_loadl_epi64((const __m128i *)offsets);
  return (avx2_scales){_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(once, once)),
                       _mm256_slli_epi32(_mm256_cvtepu8_epi32(sixteens), 4)};
}
IN(TARGET) avx2_scales avx2_zeros_at(const uint8_t *zeros) {
  return (avx2_scales){_mm256_set1_epi16(1), _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)zeros))};
}
IN(TARGET) void avx2_add(int32_t *totals, __m256i sums, avx2_scales of, const struct group_sum *x) {
  const __m256i offsets = _mm256_madd_epi16(of.offsets, _mm256_set1_epi32(x->high >> 16));
  const __m256i added = _mm256_sub_epi32(_mm256_madd_epi16(sums, of.scales), offsets);
  __m256i *to = (__m256i *)totals;
  _mm256_storeu_si256(to, _mm256_add_epi32(_mm256_loadu_si256(to), added));
}
#include "int4_rows.h"

/* ---- AVX-512 with VNNI: four products in 32 bits ---- */
#define NAME(name) vnni_##name
#define LANES 16
#define VECTORS 4
#ifdef SOFTWARE_VNNI /* for tests on a CPU that has none */
#include "int4_plain.h"
#else
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma")))
typedef __m512i vnni_sums, vnni_bytes, vnni_scales;

IN(TARGET) __m512i vnni_load(const uint8_t *from) { return _mm512_loadu_si512(from); }
IN(TARGET) __m512i vnni_low(__m512i x) { return _mm512_and_si512(x, _mm512_set1_epi8(15)); }
IN(TARGET) __m512i vnni_high(__m512i x) { return _mm512_and_si512(_mm512_srli_epi16(x, 4), _mm512_set1_epi8(15)); }
IN(TARGET) __m512i vnni_dot(__m512i sums, __m512i weights, const int8_t *four) {
  int32_t all;
  memcpy(&all, four, 4);
  return _mm512_dpbusd_epi32(sums, weights, _mm512_set1_epi32(all));
}
IN(TARGET) __m512i vnni_first(__m512i weights, const int8_t *four, const struct group_sum *x) {
  return vnni_dot(_mm512_set1_epi32(x->start), weights, four);
}
/* For each output two numbers of 16 bits: what the products are multiplied by, and what the sum of a row is. */
IN(TARGET) __m512i vnni_scales_at(const uint8_t *scales, const uint8_t *offsets) {
  const __m512i once = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)scales));
  const __m512i sixteens = _mm512_slli_epi32(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)offsets)), 20);
  return _mm512_sub_epi32(_mm512_add_epi32(once, _mm512_slli_epi32(once, 19)), sixteens);
}
IN(TARGET) __m512i vnni_zeros_at(const uint8_t *zeros) {
  const __m512i all = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)zeros));
  return _mm512_sub_epi32(_mm512_set1_epi32(8 * 65536 + 1), _mm512_slli_epi32(all, 16));
}
IN(TARGET) void vnni_add(int32_t *totals, __m512i sums, __m512i of, const struct group_sum *x) {
  /* The lower halves of the sums, and the sum of the row: (sums & 0xffff) | high. */
  const __m512i both = _mm512_ternarylogic_epi32(sums, _mm512_set1_epi32(0xffff), _mm512_set1_epi32(x->high), 0xea);
  _mm512_storeu_si512(totals, _mm512_dpwssd_epi32(_mm512_loadu_si512(totals), both, of));
}
#endif
#include "int4_rows.h"
#endif

void int4_round_row(const struct integer_product *p, int64_t row) {
  switch (p->level) {
#ifdef __x86_64__
    case INT4_AVX2: avx2_round_row(p, row); return;
    case INT4_VNNI: vnni_round_row(p, row); return;
#endif
    default: plain_round_row(p, row);
  }
}

void int4_multiply_block(const struct integer_product *p, int64_t block) {
  switch (p->level) {
#ifdef __x86_64__
    case INT4_AVX2: avx2_block(p, block); return;
    case INT4_VNNI: vnni_block(p, block); return;
#endif
    default: plain_block(p, block);
  }
}

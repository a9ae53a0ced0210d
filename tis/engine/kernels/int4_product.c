/* Rows of float32 or bfloat16, multiplied with 4-bit weights.

   32 inputs of an output are a group: weight = scale of the output * (scale of the group * number - 16 * offset of the
   group), where the number has 4 bits, and scale and offset of the group have 8. Blocks of outputs lie as
   [block][group]: a scale for each output, an offset for each, then four times for each output four bytes, which are two
   steps of four inputs: the lower halves are the first step.

   Each group of a row is rounded to 8 bits with a power of two of its own. So a group adds to an output the products of
   its numbers, then those of its offset, both integers of at most 24 bits times that power: all levels have the same bits,
   and a row the same beside any others.

   Weights of files that were saved in 4 bits keep their scales (`group` of integer_product.h): weight = scale * (number -
   zero), where `group` inputs of an output share a scale of 32 bits. Blocks lie as [block][group of 32], with a zero of 8
   bits for each output instead of scale and offset; `scales` as [block][group of inputs][output]. What the inputs of a
   scale add is summed as above, and then multiplied by it and added to the output, with one rounding. */
#include <math.h>
#include <string.h>

#include "integer_rows.h"

enum { INT4_GROUP = 32 };

/* Of one group of a row. */
struct group_scale {
  float scale, sum; /* the power of two; the sum of the integers, times it */
};

static int64_t int4_groups(const struct integer_product *p) { return (p->inputs + INT4_GROUP - 1) / INT4_GROUP; }

/* The integers of a row, and then a `group_scale` for each group. */
int64_t int4_row_bytes(const struct integer_product *p) {
  return int4_groups(p) * (INT4_GROUP + (int64_t)sizeof(struct group_scale));
}

int64_t int4_block_bytes(const struct integer_product *p) {
  return int4_groups(p) * integer_width(p->level) * ((p->group ? 1 : 2) + INT4_GROUP / 2);
}

/* The largest is from 64 to 127, after rounding. Numbers that are tiny or none: no integers. */
ALWAYS_INLINE void round_group(const float *numbers, int8_t *to, struct group_scale *scale) {
  uint32_t largest = 0;
  for (int i = 0; i < INT4_GROUP; i++) {
    uint32_t bits;
    memcpy(&bits, numbers + i, 4);
    bits &= 0x7fffffff;
    largest = bits > largest ? bits : largest;
  }
  int32_t exponent = (int32_t)(largest >> 23); /* the largest is in [2^(exponent - 127), twice that) */
  if ((largest & 0x7fffff) >= 0x7f0000) exponent++; /* would be rounded to 128 */
  *scale = (struct group_scale){largest >= 0x7f800000 ? NAN : 0, 0};
  if (exponent < 32 || largest >= 0x7f800000) {
    memset(to, 0, INT4_GROUP);
    return;
  }
  const uint32_t bits = (uint32_t)(exponent - 6) << 23, inverse_bits = (uint32_t)(260 - exponent) << 23;
  float inverse;
  memcpy(&scale->scale, &bits, 4);
  memcpy(&inverse, &inverse_bits, 4);
  int32_t sum = 0;
  for (int i = 0; i < INT4_GROUP; i++) {
    const int32_t integer = (int32_t)rintf(numbers[i] * inverse);
    to[i] = (int8_t)integer;
    sum += integer;
  }
  scale->sum = (float)sum * scale->scale;
}

ALWAYS_INLINE void round_row(const struct integer_product *p, int64_t row) {
  const int64_t groups = int4_groups(p);
  int8_t *to = (int8_t *)p->integers + row * int4_row_bytes(p);
  struct group_scale *scales = (struct group_scale *)(to + groups * INT4_GROUP);
  for (int64_t group = 0; group < groups; group++) {
    const int64_t first = group * INT4_GROUP, left = p->inputs - first, count = left < INT4_GROUP ? left : INT4_GROUP;
    float numbers[INT4_GROUP] = {0};
    integer_load_row(p, row, first, count, numbers);
    round_group(numbers, to + first, scales + group);
  }
}

#define IN(target) target ALWAYS_INLINE
/* Rows whose sums are kept at once, and how long before its use a weight is fetched. */
enum { ROWS = 4, FETCHED_BYTES = 1 << 12 };
/* What stands before the numbers of 32 inputs, and whether each 32 have a scale of 32 bits. */
enum head { SCALES_AND_OFFSETS, ZEROS, SCALED_ZEROS };

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
  __m256i scales; /* of the sums of an output, in 16 bits */
  __m256 offsets;
} avx2_scales;

IN(TARGET) __m256i avx2_load(const uint8_t *from) { return _mm256_loadu_si256((const __m256i *)from); }
IN(TARGET) __m256i avx2_low(__m256i x) { return _mm256_and_si256(x, _mm256_set1_epi8(15)); }
IN(TARGET) __m256i avx2_high(__m256i x) { return _mm256_and_si256(_mm256_srli_epi16(x, 4), _mm256_set1_epi8(15)); }
IN(TARGET) __m256i avx2_first(__m256i weights, const int8_t *four) {
  int32_t all;
  memcpy(&all, four, 4);
  return _mm256_maddubs_epi16(weights, _mm256_set1_epi32(all));
}
IN(TARGET) __m256i avx2_dot(__m256i sums, __m256i weights, const int8_t *four) {
  /* In place, which GCC would not see: it adds in another order, for which it moves sums to memory and back. */
  __asm__("vpaddw %1, %0, %0" : "+x"(sums) : "x"(avx2_first(weights, four)));
  return sums;
}
IN(TARGET) avx2_scales avx2_scales_at(const uint8_t *scales, const uint8_t *offsets) {
  const __m128i once = _mm_loadl_epi64((const __m128i *)scales), sixteens = _mm_loadl_epi64((const __m128i *)offsets);
  return (avx2_scales){_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(once, once)),
                       _mm256_cvtepi32_ps(_mm256_slli_epi32(_mm256_cvtepu8_epi32(sixteens), 4))};
}
IN(TARGET) avx2_scales avx2_zeros_at(const uint8_t *zeros) {
  return (avx2_scales){_mm256_set1_epi16(1), _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)zeros)))};
}
IN(TARGET) void avx2_add(float *totals, __m256i sums, avx2_scales of, const struct group_scale *x) {
  const __m256 added = _mm256_cvtepi32_ps(_mm256_madd_epi16(sums, of.scales));
  const __m256 total = _mm256_fmadd_ps(added, _mm256_set1_ps(x->scale), _mm256_loadu_ps(totals));
  _mm256_storeu_ps(totals, _mm256_fnmadd_ps(of.offsets, _mm256_set1_ps(x->sum), total));
}
IN(TARGET) void avx2_add_scaled(float *totals, __m256i sums, avx2_scales of, const struct group_scale *x, const float *by) {
  const __m256 numbers = _mm256_cvtepi32_ps(_mm256_madd_epi16(sums, of.scales));
  const __m256 added = _mm256_fnmadd_ps(of.offsets, _mm256_set1_ps(x->sum), _mm256_mul_ps(numbers, _mm256_set1_ps(x->scale)));
  _mm256_storeu_ps(totals, _mm256_fmadd_ps(added, _mm256_loadu_ps(by), _mm256_loadu_ps(totals)));
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
typedef __m512i vnni_sums, vnni_bytes;
typedef struct {
  __m512 scales, offsets;
} vnni_scales;

IN(TARGET) __m512i vnni_load(const uint8_t *from) { return _mm512_loadu_si512(from); }
IN(TARGET) __m512i vnni_low(__m512i x) { return _mm512_and_si512(x, _mm512_set1_epi8(15)); }
IN(TARGET) __m512i vnni_high(__m512i x) { return _mm512_and_si512(_mm512_srli_epi16(x, 4), _mm512_set1_epi8(15)); }
IN(TARGET) __m512i vnni_dot(__m512i sums, __m512i weights, const int8_t *four) {
  int32_t all;
  memcpy(&all, four, 4);
  return _mm512_dpbusd_epi32(sums, weights, _mm512_set1_epi32(all));
}
IN(TARGET) vnni_scales vnni_scales_at(const uint8_t *scales, const uint8_t *offsets) {
  const __m512i once = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)scales));
  const __m512i sixteens = _mm512_slli_epi32(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)offsets)), 4);
  return (vnni_scales){_mm512_cvtepi32_ps(once), _mm512_cvtepi32_ps(sixteens)};
}
IN(TARGET) vnni_scales vnni_zeros_at(const uint8_t *zeros) {
  const __m512i offsets = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)zeros));
  return (vnni_scales){_mm512_set1_ps(1), _mm512_cvtepi32_ps(offsets)};
}
IN(TARGET) void vnni_add(float *totals, __m512i sums, vnni_scales of, const struct group_scale *x) {
  const __m512 added = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), of.scales);
  const __m512 total = _mm512_fmadd_ps(added, _mm512_set1_ps(x->scale), _mm512_loadu_ps(totals));
  _mm512_storeu_ps(totals, _mm512_fnmadd_ps(of.offsets, _mm512_set1_ps(x->sum), total));
}
IN(TARGET) void vnni_add_scaled(float *totals, __m512i sums, vnni_scales of, const struct group_scale *x, const float *by) {
  const __m512 numbers = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), _mm512_set1_ps(x->scale));
  const __m512 added = _mm512_fnmadd_ps(of.offsets, _mm512_set1_ps(x->sum), numbers);
  _mm512_storeu_ps(totals, _mm512_fmadd_ps(added, _mm512_loadu_ps(by), _mm512_loadu_ps(totals)));
}
IN(TARGET) __m512i vnni_first(__m512i weights, const int8_t *four) { return vnni_dot(_mm512_setzero_si512(), weights, four); }
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

/* Weights in spans with AVX2, pairs of products in 32 bits: see int8_spans.h. */
#ifdef __x86_64__
#include <immintrin.h>

#include "int8_spans.h"

#define TARGET __attribute__((target("avx2,fma,f16c")))
enum { AVX2_WIDTH = 16, AVX2_ROWS = 6 };

TARGET void int8_spans_round_avx2(const struct integer_product *p, int64_t row) { round_spans(p, row, 0); }

/* Of eight outputs of a span: their scales, and their zeros or offsets. */
struct factors {
  __m256 scales, shifts;
};

TARGET ALWAYS_INLINE struct factors factors_avx2(const uint8_t *zeros, const float *scales, const int at, const struct form form) {
  if (form.has_offsets) {
    const uint16_t *halves = (const uint16_t *)scales + at;
#define HALVES(from) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from)))
    return (struct factors){HALVES(halves), HALVES(halves + AVX2_WIDTH)};
#undef HALVES
  }
  const __m256i integers = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(zeros + at)));
  return (struct factors){_mm256_loadu_ps(scales + at), _mm256_cvtepi32_ps(integers)};
}

/* totals += what eight outputs of a span give one row. */
TARGET ALWAYS_INLINE void add_avx2(float *totals, __m256i four, __m256i next, const struct span_scale *x, struct factors by,
                                   const struct form form) {
  __m256i sums = _mm256_permute4x64_epi64(_mm256_hadd_epi32(four, next), 0xd8);
  const __m256 power = _mm256_set1_ps(x->power), sum = _mm256_mul_ps(_mm256_set1_ps((float)x->sum), power);
  __m256 total = _mm256_loadu_ps(totals);
  if (form.has_offsets) {
    sums = _mm256_sub_epi32(sums, _mm256_set1_epi32(middle_of(form) * x->sum));
    total = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(sums), power), by.scales, total);
    total = _mm256_fmadd_ps(by.shifts, sum, total);
  } else {
    const __m256 added = _mm256_fnmadd_ps(by.shifts, sum, _mm256_mul_ps(_mm256_cvtepi32_ps(sums), power));
    total = _mm256_fmadd_ps(added, by.scales, total);
  }
  _mm256_storeu_ps(totals, total);
}

/* Vector `i` of the four of a step. */
TARGET ALWAYS_INLINE __m256i weights_avx2(const uint8_t *weights, const int i, const int has_6_bits) {
#define LOAD(i) _mm_loadu_si128((const __m128i *)(weights + 16 * (i)))
#define UPPER(i, to) _mm_and_si128(_mm_srli_epi16(LOAD(i), 6 - 2 * (i)), _mm_set1_epi8(to))
  if (!has_6_bits) return _mm256_cvtepu8_epi16(LOAD(i));
  if (i < 3) return _mm256_cvtepu8_epi16(_mm_and_si128(LOAD(i), _mm_set1_epi8(0x3f)));
  return _mm256_cvtepu8_epi16(_mm_or_si128(_mm_or_si128(UPPER(0, 0x03), UPPER(1, 0x0c)), UPPER(2, 0x30)));
#undef LOAD
#undef UPPER
}

/* One span of eight outputs for up to six rows, `part` 0 or 8, or of sixteen for one or two, whose weights are read once. The
   sums have names, as GCC keeps an array of them in memory; those of an output are pairs, and each vector has four outputs. */
TARGET ALWAYS_INLINE void span_avx2(const struct integer_product *p, const uint8_t *zeros, const uint8_t *weights,
                                    const uint8_t *x, const uint8_t *of_x, int64_t row_bytes, const float *scales,
                                    const int rows, const struct form form, const int part, float *totals) {
#define WEIGHTS(i) weights_avx2(weights, part / 4 + i, form.has_6_bits)
#define BEGIN(r) __m256i s##r##0 = _mm256_setzero_si256(), s##r##1 = s##r##0, s##r##2 = s##r##0, s##r##3 = s##r##0;
/* In place, which GCC would not see: it moved the sums to memory and back. */
#define SUM(to, weights) __asm__("vpaddd %1, %0, %0" : "+x"(to) : "x"(_mm256_madd_epi16(weights, all)))
#define ADD(r)                                  \
  if (r < rows) {                               \
    int64_t four;                               \
    memcpy(&four, x + r * row_bytes, 8);        \
    const __m256i all = _mm256_set1_epi64x(four); \
    SUM(s##r##0, w0);                           \
    SUM(s##r##1, w1);                           \
    if (rows <= 2) {                            \
      SUM(s##r##2, w2);                         \
      SUM(s##r##3, w3);                         \
    }                                           \
  }
#define END(r)                                                                                                      \
  if (r < rows) {                                                                                                   \
    const struct span_scale *of = (const void *)(of_x + r * row_bytes);                                             \
    add_avx2(totals + r * AVX2_WIDTH, s##r##0, s##r##1, of, by0, form);                                             \
    if (rows <= 2) add_avx2(totals + r * AVX2_WIDTH + 8, s##r##2, s##r##3, of, by1, form);                          \
  }
  BEGIN(0) BEGIN(1) BEGIN(2) BEGIN(3) BEGIN(4) BEGIN(5)
  const int step_bytes = AVX2_WIDTH * (form.has_6_bits ? 3 : 4);
  for (int64_t at = 0; at < p->group; at += GROUP, weights += step_bytes, x += 2 * GROUP) {
    _mm_prefetch((const char *)weights + 4096, _MM_HINT_T0);
    const __m256i w0 = WEIGHTS(0), w1 = WEIGHTS(1);
    __m256i w2 = w0, w3 = w0;
    if (rows <= 2) w2 = WEIGHTS(2), w3 = WEIGHTS(3);
    ADD(0) ADD(1) ADD(2) ADD(3) ADD(4) ADD(5)
  }
  const struct factors by0 = factors_avx2(zeros, scales, part, form);
  const struct factors by1 = rows <= 2 ? factors_avx2(zeros, scales, part + 8, form) : by0;
  END(0) END(1) END(2) END(3) END(4) END(5)
#undef WEIGHTS
#undef BEGIN
#undef SUM
#undef ADD
#undef END
}

TARGET ALWAYS_INLINE void rows_avx2(const struct integer_product *p, int64_t block, int64_t row, const int rows,
                                    const struct form form) {
  const int64_t spans = spans_of(p), row_bytes = int8_spans_row_bytes(p), span_bytes = int8_spans_block_bytes(p) / spans;
  const uint8_t *weights = (const uint8_t *)p->weights + block * spans * span_bytes;
  const uint8_t *x = p->integers + row * row_bytes, *of_x = x + 2 * spans * p->group;
  const float *scales = p->scales + block * spans * AVX2_WIDTH;
  const int zero_bytes = form.has_offsets ? 0 : AVX2_WIDTH;
  float totals[AVX2_ROWS * AVX2_WIDTH] = {0};
  for (int64_t span = 0; span < spans; span++, weights += span_bytes, scales += AVX2_WIDTH) {
#define PART(at)                                                                                                        \
  span_avx2(p, weights, weights + zero_bytes, x + span * 2 * p->group, of_x + span * (int64_t)sizeof(struct span_scale), \
            row_bytes, scales, rows, form, at, totals + at);
    PART(0)
    if (rows > 2) PART(8)
#undef PART
  }
  for (int r = 0; r < rows; r++) integer_finish_row(p, block, row + r, totals + r * AVX2_WIDTH, AVX2_WIDTH);
}

TARGET ALWAYS_INLINE void all_rows_avx2(const struct integer_product *p, int64_t block, const struct form form) {
  int64_t row = 0;
  for (; row + AVX2_ROWS <= p->rows; row += AVX2_ROWS) rows_avx2(p, block, row, AVX2_ROWS, form);
  switch (p->rows - row) {
    case 1: rows_avx2(p, block, row, 1, form); break;
    case 2: rows_avx2(p, block, row, 2, form); break;
    case 3: rows_avx2(p, block, row, 3, form); break;
    case 4: rows_avx2(p, block, row, 4, form); break;
    case 5: rows_avx2(p, block, row, 5, form); break;
  }
}

TARGET void int8_spans_block_avx2(const struct integer_product *p, int64_t block) {
  switch (p->level) {
    case INT8_SPANS_AVX2: all_rows_avx2(p, block, (struct form){0, 0}); break;
    case INT6_AVX2: all_rows_avx2(p, block, (struct form){1, 0}); break;
    case OFFSETS8_AVX2: all_rows_avx2(p, block, (struct form){0, 1}); break;
    case OFFSETS6_AVX2: all_rows_avx2(p, block, (struct form){1, 1}); break;
  }
}
#endif

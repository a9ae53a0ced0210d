/* Weights in spans with AVX-512 and VNNI, four products of bytes in 32 bits: see int8_spans.h. */
#ifdef __x86_64__
#include <immintrin.h>

#include "int8_spans.h"

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma")))
enum { VNNI_WIDTH = 64, VNNI_ROWS = 3 };

TARGET void int8_spans_round_vnni(const struct integer_product *p, int64_t row) { round_spans(p, row, 1); }

/* totals += what a span of 64 outputs gives one row. */
TARGET __attribute__((noinline)) static void add_vnni(float *totals, const int32_t *high, const int32_t *low,
                                                      const struct span_scale *x, const uint8_t *zeros, const float *scales) {
  const __m512 power = _mm512_set1_ps(x->power), sum = _mm512_mul_ps(_mm512_set1_ps((float)x->sum), power);
  for (int i = 0; i < VNNI_WIDTH; i += 16) {
    const __m512i integers = _mm512_add_epi32(_mm512_slli_epi32(_mm512_load_si512(high + i), 8), _mm512_load_si512(low + i));
    const __m512 zero = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(zeros + i))));
    const __m512 added = _mm512_fnmadd_ps(zero, sum, _mm512_mul_ps(_mm512_cvtepi32_ps(integers), power));
    _mm512_store_ps(totals + i, _mm512_fmadd_ps(added, _mm512_loadu_ps(scales + i), _mm512_load_ps(totals + i)));
  }
}

/* The same with offsets. `middle` is that of the integers of this row. */
TARGET __attribute__((noinline)) static void add_with_offsets_vnni(float *totals, const int32_t *high, const int32_t *low,
                                                                   const struct span_scale *x, int32_t middle,
                                                                   const uint16_t *halves) {
#define HALVES(from) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(from)))
  const __m512 power = _mm512_set1_ps(x->power), sum = _mm512_mul_ps(_mm512_set1_ps((float)x->sum), power);
  const __m512i less = _mm512_set1_epi32(middle);
  for (int i = 0; i < VNNI_WIDTH; i += 16) {
    const __m512i integers = _mm512_add_epi32(_mm512_slli_epi32(_mm512_load_si512(high + i), 8), _mm512_load_si512(low + i));
    const __m512 added = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_sub_epi32(integers, less)), power);
    const __m512 total = _mm512_fmadd_ps(added, HALVES(halves + i), _mm512_load_ps(totals + i));
    _mm512_store_ps(totals + i, _mm512_fmadd_ps(HALVES(halves + VNNI_WIDTH + i), sum, total));
  }
#undef HALVES
}

/* A block for up to three rows, which are six planes. The sums have names, as GCC keeps an array of them in memory. */
TARGET ALWAYS_INLINE void rows_vnni(const struct integer_product *p, int64_t block, int64_t row, const int rows,
                                    const struct form form) {
#define BEGIN(q) __m512i s##q##0 = _mm512_setzero_si512(), s##q##1 = s##q##0, s##q##2 = s##q##0, s##q##3 = s##q##0;
#define ADD(q)                                                            \
  if (q < 2 * rows) {                                                     \
    int32_t four;                                                         \
    memcpy(&four, x + q / 2 * row_bytes + q % 2 * size + at, 4);          \
    const __m512i all = _mm512_set1_epi32(four);                          \
    s##q##0 = _mm512_dpbusd_epi32(s##q##0, w0, all);                      \
    s##q##1 = _mm512_dpbusd_epi32(s##q##1, w1, all);                      \
    s##q##2 = _mm512_dpbusd_epi32(s##q##2, w2, all);                      \
    s##q##3 = _mm512_dpbusd_epi32(s##q##3, w3, all);                      \
  }
#define END(q)                                 \
  if (q < 2 * rows) {                          \
    _mm512_store_si512(sums[q], s##q##0);      \
    _mm512_store_si512(sums[q] + 16, s##q##1); \
    _mm512_store_si512(sums[q] + 32, s##q##2); \
    _mm512_store_si512(sums[q] + 48, s##q##3); \
  }
  const int64_t size = p->group, spans = spans_of(p), row_bytes = int8_spans_row_bytes(p);
  const uint8_t *weights = (const uint8_t *)p->weights + block * int8_spans_block_bytes(p);
  const uint8_t *x = p->integers + row * row_bytes, *of_x = x + 2 * spans * size;
  const float *scales = p->scales + block * spans * VNNI_WIDTH;
  _Alignas(64) float totals[VNNI_ROWS][VNNI_WIDTH];
  _Alignas(64) int32_t sums[2 * VNNI_ROWS][VNNI_WIDTH];
  for (int i = 0; i < rows * VNNI_WIDTH; i += 16) _mm512_store_ps(totals[0] + i, _mm512_setzero_ps());
  for (int64_t span = 0; span < spans; span++, x += 2 * size, scales += VNNI_WIDTH, of_x += sizeof(struct span_scale)) {
    const uint8_t *zeros = weights;
    if (!form.has_offsets) weights += VNNI_WIDTH;
    BEGIN(0) BEGIN(1) BEGIN(2) BEGIN(3) BEGIN(4) BEGIN(5)
    for (int64_t at = 0; at < size; at += GROUP, weights += VNNI_WIDTH * (form.has_6_bits ? 3 : 4)) {
      __m512i w0 = _mm512_loadu_si512(weights), w1 = _mm512_loadu_si512(weights + 64);
      __m512i w2 = _mm512_loadu_si512(weights + 128), w3;
      if (form.has_6_bits) {
#define UPPER(w, by, to) _mm512_and_si512(_mm512_srli_epi16(w, by), _mm512_set1_epi8(to))
        w3 = _mm512_or_si512(_mm512_or_si512(UPPER(w0, 6, 0x03), UPPER(w1, 4, 0x0c)), UPPER(w2, 2, 0x30));
        const __m512i lower = _mm512_set1_epi8(0x3f);
        w0 = _mm512_and_si512(w0, lower), w1 = _mm512_and_si512(w1, lower), w2 = _mm512_and_si512(w2, lower);
#undef UPPER
      } else {
        w3 = _mm512_loadu_si512(weights + 192);
      }
      ADD(0) ADD(1) ADD(2) ADD(3) ADD(4) ADD(5)
    }
    END(0) END(1) END(2) END(3) END(4) END(5)
    for (int r = 0; r < rows; r++) {
      const struct span_scale *of = (const void *)(of_x + r * row_bytes);
      if (form.has_offsets)
        add_with_offsets_vnni(totals[r], sums[2 * r], sums[2 * r + 1], of, middle_of(form) * of->sum,
                              (const uint16_t *)scales);
      else
        add_vnni(totals[r], sums[2 * r], sums[2 * r + 1], of, zeros, scales);
    }
  }
  for (int r = 0; r < rows; r++) integer_finish_row(p, block, row + r, totals[r], VNNI_WIDTH);
#undef BEGIN
#undef ADD
#undef END
}

TARGET ALWAYS_INLINE void all_rows_vnni(const struct integer_product *p, int64_t block, const struct form form) {
  int64_t row = 0;
  for (; row + VNNI_ROWS <= p->rows; row += VNNI_ROWS) rows_vnni(p, block, row, VNNI_ROWS, form);
  if (p->rows - row == 2) rows_vnni(p, block, row, 2, form);
  if (p->rows - row == 1) rows_vnni(p, block, row, 1, form);
}

TARGET void int8_spans_block_vnni(const struct integer_product *p, int64_t block) {
  switch (p->level) {
    case INT8_SPANS_VNNI: all_rows_vnni(p, block, (struct form){0, 0}); break;
    case INT6_VNNI: all_rows_vnni(p, block, (struct form){1, 0}); break;
    case OFFSETS8_VNNI: all_rows_vnni(p, block, (struct form){0, 1}); break;
    case OFFSETS6_VNNI: all_rows_vnni(p, block, (struct form){1, 1}); break;
  }
}
#endif

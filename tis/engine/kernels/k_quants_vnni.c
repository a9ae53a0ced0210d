/* K-quants with AVX-512 and VNNI: see k_quants.h. */
#ifdef __x86_64__
#include <immintrin.h>

#include "k_quants.h"

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma")))
enum { VNNI_WIDTH = 64 };

TARGET void k_quants_round_vnni(const struct integer_product *p, int64_t row) { round_row(p, row); }

/* Of 16 outputs, as integers of 32 bits. */
TARGET ALWAYS_INLINE __m512i scales_vnni(const struct chunk *c, int group, int i) {
  return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(c->scales + group * VNNI_WIDTH + 16 * i)));
}

/* Four inputs of all outputs: the first and the third in four vectors, then the others. 32 is added to them. */
TARGET ALWAYS_INLINE void unpack_vnni(const uint8_t *from, __m512i *to) {
  const __m512i lower = _mm512_set1_epi8(0x3f);
  for (int i = 0; i < 3 * VNNI_WIDTH; i += 64) _mm_prefetch((const char *)from + FETCHED + i, _MM_HINT_T0);
#define UPPER(w, by, to) _mm512_and_si512(_mm512_srli_epi16(w, by), _mm512_set1_epi8(to))
  const __m512i w0 = _mm512_loadu_si512(from), w1 = _mm512_loadu_si512(from + 64), w2 = _mm512_loadu_si512(from + 128);
  const __m512i w3 = _mm512_or_si512(_mm512_or_si512(UPPER(w0, 6, 0x03), UPPER(w1, 4, 0x0c)), UPPER(w2, 2, 0x30));
#undef UPPER
  const __m512i fours[4] = {_mm512_and_si512(w0, lower), _mm512_and_si512(w1, lower), _mm512_and_si512(w2, lower), w3};
  for (int i = 0; i < 4; i++) {
    to[i] = _mm512_and_si512(fours[i], _mm512_set1_epi16(0xff));
    to[4 + i] = _mm512_srli_epi16(fours[i], 8);
  }
}

TARGET ALWAYS_INLINE void minima_vnni(const struct chunk *c, float *minima) {
  for (int i = 0; i < CHUNK / ROUNDED * VNNI_WIDTH && c->minima; i += 16) {
    const __m512i integers = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(c->minima + i)));
    const __m512 least = _mm512_loadu_ps(c->least + i % VNNI_WIDTH);
    _mm512_store_ps(minima + i, _mm512_mul_ps(_mm512_cvtepi32_ps(integers), least));
  }
}

TARGET ALWAYS_INLINE void expand_vnni(const struct chunk *c, int16_t *to, float *minima) {
  const uint8_t *from = c->numbers;
  for (int group = 0; group < CHUNK / SCALED; group++) {
    __m512i twice[4]; /* in both halves of the 32 bits */
    for (int i = 0; i < 4; i++) {
      const __m512i scales = scales_vnni(c, group, i);
      twice[i] = _mm512_mask_blend_epi16(0xaaaaaaaa, scales, _mm512_slli_epi32(scales, 16));
    }
    for (int step = 0; step < SCALED; step += GROUP, from += 3 * VNNI_WIDTH, to += GROUP * VNNI_WIDTH) {
      __m512i numbers[8];
      unpack_vnni(from, numbers);
      for (int i = 0; i < 8; i++) {
        const __m512i number = _mm512_sub_epi16(numbers[i], _mm512_set1_epi16(MIDDLE));
        _mm512_store_si512((__m512i *)to + i, _mm512_mullo_epi16(number, twice[i % 4]));
      }
    }
  }
  minima_vnni(c, minima);
}

/* totals += what 64 outputs and 32 inputs give one row. */
TARGET __attribute__((noinline)) static void add_vnni(float *totals, const int32_t *sums, const struct rounded *x, const float *d,
                                                      const float *minima) {
  const __m512 power = _mm512_set1_ps(x->power), sum = _mm512_set1_ps(x->sum);
  for (int i = 0; i < VNNI_WIDTH; i += 16) {
    const __m512 scale = _mm512_mul_ps(_mm512_loadu_ps(d + i), power);
    __m512 total = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_load_si512(sums + i)), scale, _mm512_load_ps(totals + i));
    if (minima) total = _mm512_fnmadd_ps(_mm512_load_ps(minima + i), sum, total);
    _mm512_store_ps(totals + i, total);
  }
}

TARGET ALWAYS_INLINE void rows_vnni(const struct chunk *c, const int16_t *weights, const float *minima, const uint8_t *x,
                                    const uint8_t *of_x, int64_t row_bytes, float *totals, const int rows) {
#define BEGIN(r) __m512i s##r##0 = _mm512_setzero_si512(), s##r##1 = s##r##0, s##r##2 = s##r##0, s##r##3 = s##r##0;
/* In place, which GCC would not see: it moved the sums to memory and back. */
#define SUM(to, weights) __asm__("vpdpwssd %2, %1, %0" : "+v"(to) : "v"(weights), "v"(two))
#define ADD(r)                                      \
  if (r < rows) {                                   \
    int32_t of_row;                                 \
    memcpy(&of_row, x + r * row_bytes + 2 * at, 4); \
    const __m512i two = _mm512_set1_epi32(of_row);  \
    SUM(s##r##0, w0);                               \
    SUM(s##r##1, w1);                               \
    SUM(s##r##2, w2);                               \
    SUM(s##r##3, w3);                               \
  }
#define END(r)                                 \
  if (r < rows) {                              \
    _mm512_store_si512(sums[r], s##r##0);      \
    _mm512_store_si512(sums[r] + 16, s##r##1); \
    _mm512_store_si512(sums[r] + 32, s##r##2); \
    _mm512_store_si512(sums[r] + 48, s##r##3); \
  }
  _Alignas(64) int32_t sums[ROWS][VNNI_WIDTH];
  for (int group = 0; group < CHUNK / ROUNDED; group++, x += 2 * ROUNDED) {
    const float *minima_of = c->minima ? minima + group * VNNI_WIDTH : NULL;
    BEGIN(0) BEGIN(1) BEGIN(2) BEGIN(3) BEGIN(4) BEGIN(5)
    for (int at = 0; at < ROUNDED; at += 2, weights += 2 * VNNI_WIDTH) {
      const __m512i w0 = _mm512_load_si512(weights), w1 = _mm512_load_si512(weights + 32);
      const __m512i w2 = _mm512_load_si512(weights + 64), w3 = _mm512_load_si512(weights + 96);
      ADD(0) ADD(1) ADD(2) ADD(3) ADD(4) ADD(5)
    }
    END(0) END(1) END(2) END(3) END(4) END(5)
    for (int r = 0; r < rows; r++)
      add_vnni(totals + r * VNNI_WIDTH, sums[r], (const struct rounded *)(of_x + r * row_bytes) + group, c->d, minima_of);
  }
#undef BEGIN
#undef ADD
#undef END
}

/* The same integers for one row: sums of 16 numbers are multiplied with scales, not the numbers. */
TARGET ALWAYS_INLINE void one_row_vnni(const struct chunk *c, float *minima, const uint8_t *x, const struct rounded *of_x,
                                       float *totals) {
  const uint8_t *from = c->numbers;
  minima_vnni(c, minima);
  for (int group = 0; group < CHUNK / ROUNDED; group++, of_x++) {
    _Alignas(64) int32_t sums[VNNI_WIDTH] = {0};
    for (int half = 0; half < 2; half++) {
      __m512i s0 = _mm512_set1_epi32(-of_x->middle[half]), s1 = s0, s2 = s0, s3 = s0, two, numbers[8];
      for (int step = 0; step < SCALED; step += GROUP, from += 3 * VNNI_WIDTH, x += 2 * GROUP) {
        int32_t even, odd;
        memcpy(&even, x, 4), memcpy(&odd, x + 4, 4);
        unpack_vnni(from, numbers);
        two = _mm512_set1_epi32(even);
        SUM(s0, numbers[0]);
        SUM(s1, numbers[1]);
        SUM(s2, numbers[2]);
        SUM(s3, numbers[3]);
        two = _mm512_set1_epi32(odd);
        SUM(s0, numbers[4]);
        SUM(s1, numbers[5]);
        SUM(s2, numbers[6]);
        SUM(s3, numbers[7]);
      }
#define ADD(i)                                                                                       \
  _mm512_store_si512(sums + 16 * i, _mm512_add_epi32(_mm512_load_si512(sums + 16 * i),               \
                                                     _mm512_mullo_epi32(s##i, scales_vnni(c, 2 * group + half, i))));
      ADD(0) ADD(1) ADD(2) ADD(3)
#undef ADD
    }
    add_vnni(totals, sums, of_x, c->d, c->minima ? minima + group * VNNI_WIDTH : NULL);
  }
}
#undef SUM

TARGET void k_quants_block_vnni(const struct integer_product *p, int64_t block) {
  MULTIPLY_BLOCK(VNNI_WIDTH, expand_vnni, rows_vnni, one_row_vnni)
}
#endif

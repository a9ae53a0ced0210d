/* K-quants with AVX2: see k_quants.h. */
#ifdef __x86_64__
#include <immintrin.h>

#include "k_quants.h"

#define TARGET __attribute__((target("avx2,fma")))
enum { AVX2_WIDTH = 16 };

TARGET void k_quants_round_avx2(const struct integer_product *p, int64_t row) { round_row(p, row); }

/* Of eight outputs, as integers of 32 bits. */
TARGET ALWAYS_INLINE __m256i scales_avx2(const struct chunk *c, int group, int i) {
  return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(c->scales + group * AVX2_WIDTH + 8 * i)));
}

/* Four inputs of all outputs: the first and the third in two vectors, then the others. 32 is added to them. */
TARGET ALWAYS_INLINE void unpack_avx2(const uint8_t *from, __m256i *to) {
  const __m256i lower = _mm256_set1_epi8(0x3f);
  _mm_prefetch((const char *)from + FETCHED, _MM_HINT_T0);
#define UPPER(w, by, to) _mm_and_si128(_mm_srli_epi16(w, by), _mm_set1_epi8(to))
  const __m256i w01 = _mm256_loadu_si256((const __m256i *)from);
  const __m128i w0 = _mm256_castsi256_si128(w01), w1 = _mm256_extracti128_si256(w01, 1);
  const __m128i w2 = _mm_loadu_si128((const __m128i *)(from + 32));
  const __m128i w3 = _mm_or_si128(_mm_or_si128(UPPER(w0, 6, 0x03), UPPER(w1, 4, 0x0c)), UPPER(w2, 2, 0x30));
#undef UPPER
  const __m256i w23 = _mm256_inserti128_si256(_mm256_castsi128_si256(w2), w3, 1);
  const __m256i fours[2] = {_mm256_and_si256(w01, lower), _mm256_and_si256(w23, lower)};
  for (int i = 0; i < 2; i++) {
    to[i] = _mm256_and_si256(fours[i], _mm256_set1_epi16(0xff));
    to[2 + i] = _mm256_srli_epi16(fours[i], 8);
  }
}

TARGET ALWAYS_INLINE void minima_avx2(const struct chunk *c, float *minima) {
  for (int i = 0; i < CHUNK / ROUNDED * AVX2_WIDTH && c->minima; i += 8) {
    const __m256i integers = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(c->minima + i)));
    const __m256 least = _mm256_loadu_ps(c->least + i % AVX2_WIDTH);
    _mm256_store_ps(minima + i, _mm256_mul_ps(_mm256_cvtepi32_ps(integers), least));
  }
}

TARGET ALWAYS_INLINE void expand_avx2(const struct chunk *c, int16_t *to, float *minima) {
  const uint8_t *from = c->numbers;
  for (int group = 0; group < CHUNK / SCALED; group++) {
    __m256i twice[2]; /* in both halves of the 32 bits */
    for (int i = 0; i < 2; i++) {
      const __m256i scales = scales_avx2(c, group, i);
      twice[i] = _mm256_blend_epi16(scales, _mm256_slli_epi32(scales, 16), 0xaa);
    }
    for (int step = 0; step < SCALED; step += GROUP, from += 3 * AVX2_WIDTH, to += GROUP * AVX2_WIDTH) {
      __m256i numbers[4];
      unpack_avx2(from, numbers);
      for (int i = 0; i < 4; i++) {
        const __m256i number = _mm256_sub_epi16(numbers[i], _mm256_set1_epi16(MIDDLE));
        _mm256_store_si256((__m256i *)to + i, _mm256_mullo_epi16(number, twice[i % 2]));
      }
    }
  }
  minima_avx2(c, minima);
}

/* totals += what eight outputs and 32 inputs give one row. */
TARGET ALWAYS_INLINE void add_avx2(float *totals, __m256i sum, const struct rounded *x, const float *d, const float *minima) {
  const __m256 scale = _mm256_mul_ps(_mm256_loadu_ps(d), _mm256_set1_ps(x->power));
  __m256 total = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), scale, _mm256_load_ps(totals));
  if (minima) total = _mm256_fnmadd_ps(_mm256_load_ps(minima), _mm256_set1_ps(x->sum), total);
  _mm256_store_ps(totals, total);
}

/* A chunk for up to six rows. The sums have names, as GCC keeps an array of them in memory. */
TARGET ALWAYS_INLINE void rows_avx2(const struct chunk *c, const int16_t *weights, const float *minima, const uint8_t *x,
                                    const uint8_t *of_x, int64_t row_bytes, float *totals, const int rows) {
#define BEGIN(r) __m256i s##r##0 = _mm256_setzero_si256(), s##r##1 = s##r##0;
/* In place, which GCC would not see: it moved the sums to memory and back. */
#define SUM(to, weights) __asm__("vpaddd %1, %0, %0" : "+x"(to) : "x"(_mm256_madd_epi16(weights, two)))
#define ADD(r)                                      \
  if (r < rows) {                                   \
    int32_t of_row;                                 \
    memcpy(&of_row, x + r * row_bytes + 2 * at, 4); \
    const __m256i two = _mm256_set1_epi32(of_row);  \
    SUM(s##r##0, w0);                               \
    SUM(s##r##1, w1);                               \
  }
#define END(r)                                                                   \
  if (r < rows) {                                                                \
    const struct rounded *of = (const struct rounded *)(of_x + r * row_bytes) + group; \
    add_avx2(totals + r * AVX2_WIDTH, s##r##0, of, c->d, minima_of);             \
    add_avx2(totals + r * AVX2_WIDTH + 8, s##r##1, of, c->d + 8, minima_of ? minima_of + 8 : NULL); \
  }
  for (int group = 0; group < CHUNK / ROUNDED; group++, x += 2 * ROUNDED) {
    const float *minima_of = c->minima ? minima + group * AVX2_WIDTH : NULL;
    BEGIN(0) BEGIN(1) BEGIN(2) BEGIN(3) BEGIN(4) BEGIN(5)
    for (int at = 0; at < ROUNDED; at += 2, weights += 2 * AVX2_WIDTH) {
      const __m256i w0 = _mm256_load_si256((const __m256i *)weights), w1 = _mm256_load_si256((const __m256i *)weights + 1);
      ADD(0) ADD(1) ADD(2) ADD(3) ADD(4) ADD(5)
    }
    END(0) END(1) END(2) END(3) END(4) END(5)
  }
#undef BEGIN
#undef ADD
#undef END
}

/* The same integers for one row: sums of 16 numbers are multiplied with scales, not the numbers. */
TARGET ALWAYS_INLINE void one_row_avx2(const struct chunk *c, float *minima, const uint8_t *x, const struct rounded *of_x,
                                       float *totals) {
  const uint8_t *from = c->numbers;
  minima_avx2(c, minima);
  for (int group = 0; group < CHUNK / ROUNDED; group++, of_x++) {
    const float *minima_of = c->minima ? minima + group * AVX2_WIDTH : NULL;
    __m256i first = _mm256_setzero_si256(), second = first, numbers[4], two;
    for (int half = 0; half < 2; half++) {
      __m256i s0 = _mm256_set1_epi32(-of_x->middle[half]), s1 = s0;
      for (int step = 0; step < SCALED; step += GROUP, from += 3 * AVX2_WIDTH, x += 2 * GROUP) {
        int32_t even, odd;
        memcpy(&even, x, 4), memcpy(&odd, x + 4, 4);
        unpack_avx2(from, numbers);
        two = _mm256_set1_epi32(even);
        SUM(s0, numbers[0]);
        SUM(s1, numbers[1]);
        two = _mm256_set1_epi32(odd);
        SUM(s0, numbers[2]);
        SUM(s1, numbers[3]);
      }
      first = _mm256_add_epi32(first, _mm256_mullo_epi32(s0, scales_avx2(c, 2 * group + half, 0)));
      second = _mm256_add_epi32(second, _mm256_mullo_epi32(s1, scales_avx2(c, 2 * group + half, 1)));
    }
    add_avx2(totals, first, of_x, c->d, minima_of);
    add_avx2(totals + 8, second, of_x, c->d + 8, minima_of ? minima_of + 8 : NULL);
  }
}
#undef SUM

TARGET void k_quants_block_avx2(const struct integer_product *p, int64_t block) {
  MULTIPLY_BLOCK(AVX2_WIDTH, expand_avx2, rows_avx2, one_row_avx2)
}
#endif

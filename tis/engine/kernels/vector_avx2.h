/* Eight lanes: AVX2 and FMA. */
#include <float.h>
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define W 8
#define HIGH_HALF 0xffff0000u
#define TARGET __attribute__((target("avx2,fma")))
#define FN TARGET static
#define IN TARGET static inline __attribute__((always_inline))
typedef __m256 vec;

IN vec v_zero(void) { return _mm256_setzero_ps(); }
IN vec v_set(float x) { return _mm256_set1_ps(x); }
IN vec v_add(vec a, vec b) { return _mm256_add_ps(a, b); }
IN vec v_sub(vec a, vec b) { return _mm256_sub_ps(a, b); }
IN vec v_mul(vec a, vec b) { return _mm256_mul_ps(a, b); }
IN vec v_div(vec a, vec b) { return _mm256_div_ps(a, b); }
IN vec v_fma(vec a, vec b, vec c) { return _mm256_fmadd_ps(a, b, c); }
IN vec v_fnma(vec a, vec b, vec c) { return _mm256_fnmadd_ps(a, b, c); }
IN vec v_max(vec a, vec b) { return _mm256_max_ps(a, b); }
IN vec v_min(vec a, vec b) { return _mm256_min_ps(a, b); }
IN vec v_round(vec x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
/* 2^n, for whole numbers from -126 to 127 */
IN vec v_power_of_two(vec n) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23));
}
/* In two steps, as n may be beyond the exponents of normal numbers. */
IN vec v_scale(vec x, vec n) {
  vec half = v_round(v_mul(n, v_set(0.5f)));
  return v_mul(v_mul(x, v_power_of_two(half)), v_power_of_two(v_sub(n, half)));
}
IN vec v_if_small(vec x, float bound, vec y, vec z) {
  vec magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
  return _mm256_blendv_ps(z, y, _mm256_cmp_ps(magnitude, _mm256_set1_ps(bound), _CMP_LT_OQ));
}
IN float v_sum(vec x) {
  __m128 half = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  half = _mm_add_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}
IN float v_largest(vec x) {
  __m128 half = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  half = _mm_max_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
}

IN vec v_load_float(const float *p) { return _mm256_loadu_ps(p); }
IN vec v_load_half(const float *p) { return _mm256_insertf128_ps(_mm256_setzero_ps(), _mm_loadu_ps(p), 0); }
IN void v_store_float(float *p, vec x) { _mm256_storeu_ps(p, x); }
IN vec v_load_bfloat(const uint16_t *p) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
}
/* Of each pair of numbers the first, or the second. */
IN vec v_load_low(const uint16_t *p) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_loadu_si256((const __m256i *)p), 16));
}
IN vec v_load_high(const uint16_t *p) {
  static const union {
    uint32_t lanes[8];
    __m256i all;
  } mask = {{HIGH_HALF, HIGH_HALF, HIGH_HALF, HIGH_HALF, HIGH_HALF, HIGH_HALF, HIGH_HALF, HIGH_HALF}};
  /* Volatile, as the mask is read from memory each time: a product has no register left for it. */
  const __m256i high = *(const volatile __m256i *)&mask.all;
  return _mm256_castsi256_ps(_mm256_and_si256(high, _mm256_loadu_si256((const __m256i *)p)));
}
IN void v_store_bfloat(uint16_t *p, vec x) {
  __m256i bits = _mm256_castps_si256(x);
  __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd), 16);
  __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  rounded = _mm256_blendv_epi8(rounded, _mm256_set1_epi32(0x7fc0), is_nan);
  __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(rounded, rounded), 0x08);
  _mm_storeu_si128((__m128i *)p, _mm256_castsi256_si128(packed));
}
IN vec v_load_int8(const int8_t *p) { return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p))); }
/* Rounded; from -127 to 127. */
IN void v_store_int8(int8_t *p, vec x) {
  const __m256i whole = _mm256_cvtps_epi32(x);
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
  _mm_storel_epi64((__m128i *)p, _mm_packs_epi16(words, words));
}

/* Turns 8 rows into 8 columns. */
IN void v_turn(vec *rows) {
  __m256 a[8], b[8];
  for (int i = 0; i < 8; i += 2) {
    a[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
    a[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < 8; i++) {
    __m256d one = _mm256_castps_pd(a[i / 4 * 4 + i % 4 / 2]), other = _mm256_castps_pd(a[i / 4 * 4 + i % 4 / 2 + 2]);
    b[i] = _mm256_castpd_ps(i % 2 ? _mm256_unpackhi_pd(one, other) : _mm256_unpacklo_pd(one, other));
  }
  for (int i = 0; i < 4; i++) {
    rows[i] = _mm256_permute2f128_ps(b[i], b[4 + i], 0x20);
    rows[4 + i] = _mm256_permute2f128_ps(b[i], b[4 + i], 0x31);
  }
}

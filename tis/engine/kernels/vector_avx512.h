/* Sixteen lanes: AVX-512, with the bfloat16 instructions where DOT_BFLOAT is defined. */
#include <float.h>
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define W 16
#ifdef DOT_BFLOAT
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")))
#else
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))
#endif
#define FN TARGET static
#define IN TARGET static inline __attribute__((always_inline))
typedef __m512 vec;

IN vec v_zero(void) { return _mm512_setzero_ps(); }
IN vec v_set(float x) { return _mm512_set1_ps(x); }
IN vec v_add(vec a, vec b) { return _mm512_add_ps(a, b); }
IN vec v_sub(vec a, vec b) { return _mm512_sub_ps(a, b); }
IN vec v_mul(vec a, vec b) { return _mm512_mul_ps(a, b); }
IN vec v_div(vec a, vec b) { return _mm512_div_ps(a, b); }
IN vec v_fma(vec a, vec b, vec c) { return _mm512_fmadd_ps(a, b, c); }
IN vec v_fnma(vec a, vec b, vec c) { return _mm512_fnmadd_ps(a, b, c); }
IN vec v_max(vec a, vec b) { return _mm512_max_ps(a, b); }
IN vec v_min(vec a, vec b) { return _mm512_min_ps(a, b); }
IN vec v_round(vec x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
IN vec v_scale(vec x, vec n) { return _mm512_scalef_ps(x, n); }
IN vec v_if_small(vec x, float bound, vec y, vec z) {
  return _mm512_mask_mov_ps(z, _mm512_cmp_ps_mask(_mm512_abs_ps(x), _mm512_set1_ps(bound), _CMP_LT_OQ), y);
}
IN float v_sum(vec x) { return _mm512_reduce_add_ps(x); }
IN float v_largest(vec x) { return _mm512_reduce_max_ps(x); }

IN vec v_load_float(const float *p) { return _mm512_loadu_ps(p); }
/* The first half of a vector, and 0 behind it. */
IN vec v_load_half(const float *p) { return _mm512_maskz_loadu_ps(0xff, p); }
IN void v_store_float(float *p, vec x) { _mm512_storeu_ps(p, x); }
IN vec v_load_bfloat(const uint16_t *p) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
}
/* Of each pair of numbers the first, or the second. */
IN vec v_load_low(const uint16_t *p) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(p), 16)); }
IN vec v_load_high(const uint16_t *p) {
  return _mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(p), _mm512_set1_epi32(0xffff0000)));
}
IN vec v_load_int8(const int8_t *p) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p))); }
/* Rounded; from -127 to 127. */
IN void v_store_int8(int8_t *p, vec x) { _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(x))); }
/* Turns 16 rows into 16 columns. */
IN void v_turn(vec *rows) {
  __m512 a[16], b[16];
  for (int i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
    a[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < 16; i++) {
    __m512d one = _mm512_castps_pd(a[i / 4 * 4 + i % 4 / 2]), other = _mm512_castps_pd(a[i / 4 * 4 + i % 4 / 2 + 2]);
    b[i] = _mm512_castpd_ps(i % 2 ? _mm512_unpackhi_pd(one, other) : _mm512_unpacklo_pd(one, other));
  }
  for (int i = 0; i < 4; i++) {
    __m512 even = _mm512_shuffle_f32x4(b[i], b[4 + i], 0x88), odd = _mm512_shuffle_f32x4(b[i], b[4 + i], 0xdd);
    __m512 even_end = _mm512_shuffle_f32x4(b[8 + i], b[12 + i], 0x88);
    __m512 odd_end = _mm512_shuffle_f32x4(b[8 + i], b[12 + i], 0xdd);
    rows[i] = _mm512_shuffle_f32x4(even, even_end, 0x88);
    rows[4 + i] = _mm512_shuffle_f32x4(odd, odd_end, 0x88);
    rows[8 + i] = _mm512_shuffle_f32x4(even, even_end, 0xdd);
    rows[12 + i] = _mm512_shuffle_f32x4(odd, odd_end, 0xdd);
  }
}
#ifdef DOT_BFLOAT
IN void v_store_bfloat(uint16_t *p, vec x) { _mm256_storeu_si256((__m256i *)p, (__m256i)_mm512_cvtneps_pbh(x)); }
/* Of each lane a number of one and, behind it, of the other. */
IN vec v_load_pairs(const uint16_t *one, const uint16_t *other) {
  __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)one));
  __m512i high = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)other));
  return _mm512_castsi512_ps(_mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
}
/* The same of numbers of 8 bits, which bfloat16 holds: neighbours as pairs; half as many of them, and 0 behind; those of two rows. */
IN vec v_load_int8_pairs(const int8_t *p) {
  return _mm512_castsi512_ps((__m512i)_mm512_cvtne2ps_pbh(v_load_int8(p + W), v_load_int8(p)));
}
IN vec v_load_half_int8_pairs(const int8_t *p) {
  return _mm512_castsi512_ps((__m512i)_mm512_cvtne2ps_pbh(v_zero(), v_load_int8(p)));
}
IN vec v_load_pairs_of_int8(const int8_t *one, const int8_t *other) {
  const __m512i low = _mm512_castps_si512(v_load_int8(one)), high = _mm512_castps_si512(v_load_int8(other));
  return _mm512_castsi512_ps(_mm512_or_si512(_mm512_srli_epi32(low, 16), high));
}
/* Each lane adds the products of two neighbours. */
IN vec v_dot(vec sum, vec a, vec b) {
  return _mm512_dpbf16_ps(sum, (__m512bh)_mm512_castps_si512(a), (__m512bh)_mm512_castps_si512(b));
}
#else
IN void v_store_bfloat(uint16_t *p, vec x) {
  __m512i bits = _mm512_castps_si512(x);
  __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd), 16);
  rounded = _mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), _mm512_set1_epi32(0x7fc0));
  _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(rounded));
}
#endif

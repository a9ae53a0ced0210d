/* Rows of float32 or bfloat16, multiplied with 8-bit weights that are read as they lie.

   Each row is rounded to integers, 16 or 8 bits, with a scale of its own. All products are exact sums of integers: a row
   has the same result beside any other rows. With VNNI, 16 bits are two planes of bytes, `high * 256 + low`. */
#include "integer_product.h"

#include <math.h>
#include <string.h>

enum { OUTPUTS = 64, AVX2_OUTPUTS = 16, TILE_GROUPS = 16 };
/* With tiles, from so many planes on: fewer wait for the weights alone. */
enum { MIN_PLANES_FOR_TILES = 5 };

int64_t int8_groups(const struct integer_product *p) {
  const int64_t groups = (p->inputs + GROUP - 1) / GROUP;
  return p->level == INT8_AMX ? (groups + TILE_GROUPS - 1) / TILE_GROUPS * TILE_GROUPS : groups;
}

/* For tiles an odd number of lines of the cache, so that neighbours do not meet in a few places of it. */
int64_t int8_plane_bytes(const struct integer_product *p) {
  const int64_t bytes = int8_groups(p) * GROUP;
  return p->level == INT8_AMX ? bytes | 64 : bytes;
}

#ifdef __x86_64__
#include <immintrin.h>

static inline float number_at(const struct integer_product *p, int64_t place) {
  if (!p->is_bfloat) return ((const float *)p->x)[place];
  const uint32_t bits = (uint32_t)((const uint16_t *)p->x)[place] << 16;
  float number;
  memcpy(&number, &bits, 4);
  return number;
}

/* The largest absolute value; not a number if one of them is none, or infinite. */
#define LARGEST(p, row, result)                                                            \
  do {                                                                                     \
    uint32_t largest_bits = 0;                                                             \
    if ((p)->is_bfloat) {                                                                  \
      const uint16_t *from = (const uint16_t *)(p)->x + (row) * (p)->row_stride;           \
      uint16_t most = 0;                                                                   \
      for (int64_t at = 0; at < (p)->inputs; at++) {                                       \
        const uint16_t size = from[at] & 0x7fff;                                           \
        most = size > most ? size : most;                                                  \
      }                                                                                    \
      largest_bits = (uint32_t)most << 16;                                                 \
    } else {                                                                               \
      const uint32_t *from = (const uint32_t *)(p)->x + (row) * (p)->row_stride;           \
      for (int64_t at = 0; at < (p)->inputs; at++) {                                       \
        const uint32_t size = from[at] & 0x7fffffff;                                       \
        largest_bits = size > largest_bits ? size : largest_bits;                          \
      }                                                                                    \
    }                                                                                      \
    memcpy(&(result), &largest_bits, 4);                                                   \
    if (largest_bits >= 0x7f800000) (result) = NAN;                                        \
  } while (0)

/* Sums and scales of one output, as the number that the layer returns. */
static inline void store(const struct integer_product *p, int64_t row, int64_t output, float value) {
  if (!p->is_bfloat) {
    ((float *)p->out)[row * p->outputs + output] = value;
    return;
  }
  uint32_t bits;
  memcpy(&bits, &value, 4);
  const uint16_t rounded = value != value ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  ((uint16_t *)p->out)[row * p->outputs + output] = rounded;
}

/* ---- AVX2: integers of 16 bits, pairs of products in 32 ---- */

#define TARGET __attribute__((target("avx2,fma")))
/* So many groups are summed in 32 bits, which hold no more: 512 products of at most 127 * 32767. The weights of a group
   are one line of the cache. */
enum { GROUPS_AT_ONCE = 128 };

TARGET static void round_row_avx2(const struct integer_product *p, int64_t row) {
  float largest;
  LARGEST(p, row, largest);
  const float inverse = largest > 0 ? 32767.0f / largest : 0;
  int16_t *to = (int16_t *)p->integers + row * int8_groups(p) * GROUP;
  for (int64_t at = 0; at < p->inputs; at++)
    to[at] = (int16_t)(int32_t)rintf(number_at(p, row * p->row_stride + at) * inverse);
  memset(to + p->inputs, 0, (int8_groups(p) * GROUP - p->inputs) * 2);
  p->row_scales[row] = largest / 32767.0f;
}

/* Up to six rows with 8 outputs, or one or two with 16, whose weights are read once. The sums have names, as GCC keeps an
   array of them in memory; those of an output are pairs, and each vector has four outputs. */
TARGET static inline __attribute__((always_inline)) void add_avx2(const int8_t *weights, const int16_t *x, int64_t size,
                                                                  int64_t groups, const int rows, float *totals) {
#define WEIGHTS(i) _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(weights + 16 * i)))
#define BEGIN(r) __m256i s##r##0 = _mm256_setzero_si256(), s##r##1 = s##r##0, s##r##2 = s##r##0, s##r##3 = s##r##0;
/* In place, which GCC would not see: it moved the sums to memory and back. */
#define SUM(to, weights) __asm__("vpaddd %1, %0, %0" : "+x"(to) : "x"(_mm256_madd_epi16(weights, all)))
#define ADD(r)                                            \
  if (r < rows) {                                         \
    int64_t four;                                         \
    memcpy(&four, x + r * size, 8);                       \
    const __m256i all = _mm256_set1_epi64x(four);         \
    SUM(s##r##0, w0);                                     \
    SUM(s##r##1, w1);                                     \
    if (rows <= 2) {                                      \
      SUM(s##r##2, w2);                                   \
      SUM(s##r##3, w3);                                   \
    }                                                     \
  }
#define PAIRS(a, b) _mm256_cvtepi32_ps(_mm256_permute4x64_epi64(_mm256_hadd_epi32(a, b), 0xd8))
#define PUT(to, a, b) _mm256_storeu_ps(to, _mm256_add_ps(_mm256_loadu_ps(to), PAIRS(a, b)))
#define END(r)                                                                            \
  if (r < rows) {                                                                         \
    PUT(totals + r * AVX2_OUTPUTS, s##r##0, s##r##1);                                     \
    if (rows <= 2) PUT(totals + r * AVX2_OUTPUTS + 8, s##r##2, s##r##3);                  \
  }
  BEGIN(0) BEGIN(1) BEGIN(2) BEGIN(3) BEGIN(4) BEGIN(5)
  for (int64_t group = 0; group < groups; group++, weights += AVX2_OUTPUTS * GROUP, x += GROUP) {
    _mm_prefetch((const char *)weights + 4096, _MM_HINT_T0);
    const __m256i w0 = WEIGHTS(0), w1 = WEIGHTS(1);
    __m256i w2 = w0, w3 = w0;
    if (rows <= 2) w2 = WEIGHTS(2), w3 = WEIGHTS(3);
    ADD(0) ADD(1) ADD(2) ADD(3) ADD(4) ADD(5)
  }
  END(0) END(1) END(2) END(3) END(4) END(5)
#undef WEIGHTS
#undef BEGIN
#undef SUM
#undef ADD
#undef PAIRS
#undef PUT
#undef END
}

TARGET static void finish_avx2(const struct integer_product *p, int64_t row, int64_t first, const float *totals) {
  const int64_t left = p->outputs - first, count = left < AVX2_OUTPUTS ? left : AVX2_OUTPUTS;
  float values[AVX2_OUTPUTS];
  for (int i = 0; i < AVX2_OUTPUTS; i++) values[i] = totals[i] * p->row_scales[row] * p->scales[first + i];
  for (int i = 0; p->bias && i < AVX2_OUTPUTS; i++) values[i] += p->bias[first + i];
  for (int64_t i = 0; i < count; i++) store(p, row, first + i, values[i]);
}

TARGET static inline __attribute__((always_inline)) void rows_avx2(const struct integer_product *p, int64_t block, int64_t row,
                                                                   const int rows) {
  const int64_t all = int8_groups(p), size = all * GROUP;
  const int16_t *x = (const int16_t *)p->integers + row * size;
  float totals[6 * AVX2_OUTPUTS] = {0};
  for (int64_t begin = 0; begin < all; begin += GROUPS_AT_ONCE) {
    const int64_t groups = begin + GROUPS_AT_ONCE < all ? GROUPS_AT_ONCE : all - begin;
    const int8_t *weights = (const int8_t *)p->weights + (block * all + begin) * AVX2_OUTPUTS * GROUP;
    for (int part = 0; part < AVX2_OUTPUTS; part += rows <= 2 ? 16 : 8)
      add_avx2(weights + part * GROUP, x + begin * GROUP, size, groups, rows, totals + part);
  }
  for (int r = 0; r < rows; r++) finish_avx2(p, row + r, block * AVX2_OUTPUTS, totals + r * AVX2_OUTPUTS);
}

TARGET static void block_avx2(const struct integer_product *p, int64_t block) {
  int64_t row = 0;
  for (; row + 6 <= p->rows; row += 6) rows_avx2(p, block, row, 6);
  switch (p->rows - row) {
    case 1: rows_avx2(p, block, row, 1); break;
    case 2: rows_avx2(p, block, row, 2); break;
    case 3: rows_avx2(p, block, row, 3); break;
    case 4: rows_avx2(p, block, row, 4); break;
    case 5: rows_avx2(p, block, row, 5); break;
  }
}
#undef TARGET

/* ---- AVX-512 with VNNI: bytes, four products in one sum ---- */

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma")))

TARGET static void round_row_vnni(const struct integer_product *p, int64_t row) {
  float largest;
  LARGEST(p, row, largest);
  const int64_t size = int8_plane_bytes(p);
  const float most = p->bits == 16 ? 32767.0f : 127.0f, inverse = largest > 0 ? most / largest : 0;
  p->row_scales[row] = largest / most;
  if (p->bits == 16) {
    uint8_t *restrict high = p->integers + 2 * row * size, *restrict low = high + size;
    for (int64_t at = 0; at < p->inputs; at++) {
      const int32_t number = (int32_t)rintf(number_at(p, row * p->row_stride + at) * inverse) + 32768;
      high[at] = (uint8_t)(number >> 8);
      low[at] = (uint8_t)number;
    }
    /* The weights of padding are zero. */
    memset(high + p->inputs, 0, size - p->inputs);
    memset(low + p->inputs, 0, size - p->inputs);
  } else {
    uint8_t *restrict to = p->integers + row * size;
    for (int64_t at = 0; at < p->inputs; at++)
      to[at] = (uint8_t)((int32_t)rintf(number_at(p, row * p->row_stride + at) * inverse) + 128);
    memset(to + p->inputs, 0, size - p->inputs);
  }
}

TARGET static inline __m512 as_values(const struct integer_product *p, int64_t row, int64_t output, __m512 sums) {
  const __m512 scales = _mm512_mul_ps(_mm512_loadu_ps(p->scales + output), _mm512_set1_ps(p->row_scales[row]));
  return p->bias ? _mm512_fmadd_ps(sums, scales, _mm512_loadu_ps(p->bias + output)) : _mm512_mul_ps(sums, scales);
}

TARGET static inline void store_sixteen(const struct integer_product *p, int64_t row, int64_t output, __m512 values) {
  const int64_t left = p->outputs - output;
  if (left <= 0) return;
  const __mmask16 mask = left >= 16 ? 0xffff : (__mmask16)((1u << left) - 1);
  if (!p->is_bfloat) {
    _mm512_mask_storeu_ps((float *)p->out + row * p->outputs + output, mask, values);
    return;
  }
  const __m512i bits = _mm512_castps_si512(values);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd), 16);
  rounded = _mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(values, values, _CMP_UNORD_Q), _mm512_set1_epi32(0x7fc0));
  _mm256_mask_storeu_epi16((uint16_t *)p->out + row * p->outputs + output, mask, _mm512_cvtepi32_epi16(rounded));
}

TARGET __attribute__((noinline)) void int8_finish(const struct integer_product *p, int64_t output, int64_t first, int planes,
                                                  const int32_t sums[][OUTPUTS]) {
  for (int64_t i = 0; i < OUTPUTS; i += 16) {
    /* The bytes are unsigned: 128 too large, or the high ones of 16 bits are. */
    const __m512i excess = _mm512_slli_epi32(_mm512_loadu_si512(p->sums + output + i), 7);
    if (p->bits == 16) {
      for (int r = 0; r < planes; r += 2) {
        const __m512 high = _mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_load_si512(sums[r] + i), excess));
        const __m512 low = _mm512_cvtepi32_ps(_mm512_load_si512(sums[r + 1] + i));
        const __m512 both = _mm512_fmadd_ps(high, _mm512_set1_ps(256), low);
        store_sixteen(p, (first + r) / 2, output + i, as_values(p, (first + r) / 2, output + i, both));
      }
    } else {
      for (int r = 0; r < planes; r++) {
        const __m512 one = _mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_load_si512(sums[r] + i), excess));
        store_sixteen(p, first + r, output + i, as_values(p, first + r, output + i, one));
      }
    }
  }
}

/* `planes` rows of bytes, from `first`, with 64 outputs. The sums have names, as GCC keeps an array of them in memory. */
TARGET static inline __attribute__((always_inline)) void tile_vnni(const struct integer_product *p, int64_t block, int64_t first,
                                                                   const int planes) {
#define BEGIN(r) __m512i s##r##0 = _mm512_setzero_si512(), s##r##1 = s##r##0, s##r##2 = s##r##0, s##r##3 = s##r##0;
#define ADD(r)                                                  \
  if (r < planes) {                                             \
    int32_t four;                                               \
    memcpy(&four, x + r * size, 4);                             \
    const __m512i all = _mm512_set1_epi32(four);                \
    s##r##0 = _mm512_dpbusd_epi32(s##r##0, all, w0);            \
    s##r##1 = _mm512_dpbusd_epi32(s##r##1, all, w1);            \
    s##r##2 = _mm512_dpbusd_epi32(s##r##2, all, w2);            \
    s##r##3 = _mm512_dpbusd_epi32(s##r##3, all, w3);            \
  }
#define END(r)                                     \
  if (r < planes) {                                \
    _mm512_store_si512(sums[r], s##r##0);          \
    _mm512_store_si512(sums[r] + 16, s##r##1);     \
    _mm512_store_si512(sums[r] + 32, s##r##2);     \
    _mm512_store_si512(sums[r] + 48, s##r##3);     \
  }
  BEGIN(0) BEGIN(1) BEGIN(2) BEGIN(3) BEGIN(4) BEGIN(5)
  const int64_t groups = int8_groups(p), size = int8_plane_bytes(p), block_size = groups * GROUP * OUTPUTS;
  const int8_t *weights = (const int8_t *)p->weights + block * block_size;
  const uint8_t *x = p->integers + first * size;
  for (int64_t group = 0; group < groups; group++, weights += OUTPUTS * GROUP, x += GROUP) {
    const __m512i w0 = _mm512_loadu_si512(weights), w1 = _mm512_loadu_si512(weights + 64);
    const __m512i w2 = _mm512_loadu_si512(weights + 128), w3 = _mm512_loadu_si512(weights + 192);
    ADD(0) ADD(1) ADD(2) ADD(3) ADD(4) ADD(5)
  }
  _Alignas(64) int32_t sums[6][OUTPUTS];
  END(0) END(1) END(2) END(3) END(4) END(5)
  int8_finish(p, block * OUTPUTS, first, planes, sums);
}

TARGET static void block_vnni(const struct integer_product *p, int64_t block) {
  const int64_t planes = p->bits == 16 ? 2 * p->rows : p->rows;
  if (p->level == INT8_AMX && planes >= MIN_PLANES_FOR_TILES) {
    int8_multiply_by_tiles(p, block);
    return;
  }
  int64_t plane = 0;
  for (; planes - plane >= 6 && planes - plane != 8; plane += 6) tile_vnni(p, block, plane, 6);
  for (; planes - plane >= 4; plane += 4) tile_vnni(p, block, plane, 4);
  if (planes - plane == 3) tile_vnni(p, block, plane, 3);
  if (planes - plane == 2) tile_vnni(p, block, plane, 2);
  if (planes - plane == 1) tile_vnni(p, block, plane, 1);
}
#undef TARGET
#endif

void int8_round_row(const struct integer_product *p, int64_t row) {
#ifdef __x86_64__
  (p->level == INT8_AVX2 ? round_row_avx2 : round_row_vnni)(p, row);
#else
  (void)p, (void)row;
#endif
}

int64_t int8_row_bytes(const struct integer_product *p) {
  return (p->level != INT8_AVX2 && p->bits == 8 ? 1 : 2) * int8_plane_bytes(p);
}

int64_t int8_block_bytes(const struct integer_product *p) { return int8_groups(p) * GROUP * integer_width(p->level); }

void int8_multiply_block(const struct integer_product *p, int64_t block) {
#ifdef __x86_64__
  (p->level == INT8_AVX2 ? block_avx2 : block_vnni)(p, block);
#else
  (void)p, (void)block;
#endif
}

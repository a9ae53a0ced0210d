/* Rows of float32 or bfloat16, multiplied with 8-bit weights of files that give groups of inputs a scale of their own, and
   with 6-bit weights.

   A span is 32, 64, 96 or 128 inputs of an output that share a scale and a zero: weight = scale * (number - zero). Blocks of
   outputs lie as [block][span]: a zero of 8 bits for each output, then four inputs of each output, and the next four;
   `scales` as [block][span][output].

   Each span of a row is rounded to 16 bits with a power of two of its own. What a span adds to an output is a sum of integers,
   exact in 32 bits, and then four operations with numbers that all levels do alike: a row has the same bits beside any others.
   With VNNI, 16 bits are two planes of bytes, `high * 256 + low`, both with a sign.

   Four vectors of 6-bit numbers are three: the last one lies in the upper two bits of the others, the lowest bits first. */
#include "integer_rows.h"

enum { MAX_SPAN = 128, PIECE = 32, ZERO_BYTES = 1 };

/* Of one span of a row. */
struct span_scale {
  float power; /* of two */
  int32_t sum; /* of the integers */
};

static int64_t spans_of(const struct integer_product *p) { return (p->inputs + p->group - 1) / p->group; }

/* The integers of a row, span by span, and then a `span_scale` for each. With VNNI a span has its high bytes first. */
int64_t int8_spans_row_bytes(const struct integer_product *p) {
  return spans_of(p) * (2 * p->group + (int64_t)sizeof(struct span_scale));
}

static int is_avx2(int64_t level) { return level == INT8_SPANS_AVX2 || level == INT6_AVX2; }

static int has_6_bits(const struct integer_product *p) { return p->level == INT6_AVX2 || p->level == INT6_VNNI; }

int64_t int8_spans_block_bytes(const struct integer_product *p) {
  return spans_of(p) * integer_width(p->level) * (ZERO_BYTES + (has_6_bits(p) ? p->group / 4 * 3 : p->group));
}

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

#ifdef __x86_64__
#include <immintrin.h>

/* ---- AVX2: pairs of products in 32 bits ---- */
#define TARGET __attribute__((target("avx2,fma")))
enum { AVX2_WIDTH = 16, AVX2_ROWS = 6 };

TARGET static void round_avx2(const struct integer_product *p, int64_t row) { round_spans(p, row, 0); }

/* totals += what eight outputs of a span give one row. */
TARGET ALWAYS_INLINE void add_avx2(float *totals, __m256i four, __m256i next, const struct span_scale *x, __m256 zeros,
                                   const float *scales) {
  const __m256i sums = _mm256_permute4x64_epi64(_mm256_hadd_epi32(four, next), 0xd8);
  const __m256 power = _mm256_set1_ps(x->power), sum = _mm256_mul_ps(_mm256_set1_ps((float)x->sum), power);
  const __m256 added = _mm256_fnmadd_ps(zeros, sum, _mm256_mul_ps(_mm256_cvtepi32_ps(sums), power));
  _mm256_storeu_ps(totals, _mm256_fmadd_ps(added, _mm256_loadu_ps(scales), _mm256_loadu_ps(totals)));
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
                                    const int rows, const int has_6_bits, const int part, float *totals) {
#define WEIGHTS(i) weights_avx2(weights, part / 4 + i, has_6_bits)
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
#define ZEROS(at) _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(zeros + (at)))))
#define END(r)                                                                                                      \
  if (r < rows) {                                                                                                   \
    const struct span_scale *of = (const void *)(of_x + r * row_bytes);                                             \
    add_avx2(totals + r * AVX2_WIDTH, s##r##0, s##r##1, of, z0, scales);                                            \
    if (rows <= 2) add_avx2(totals + r * AVX2_WIDTH + 8, s##r##2, s##r##3, of, z1, scales + 8);                     \
  }
  BEGIN(0) BEGIN(1) BEGIN(2) BEGIN(3) BEGIN(4) BEGIN(5)
  const int step_bytes = AVX2_WIDTH * (has_6_bits ? 3 : 4);
  for (int64_t at = 0; at < p->group; at += GROUP, weights += step_bytes, x += 2 * GROUP) {
    _mm_prefetch((const char *)weights + 4096, _MM_HINT_T0);
    const __m256i w0 = WEIGHTS(0), w1 = WEIGHTS(1);
    __m256i w2 = w0, w3 = w0;
    if (rows <= 2) w2 = WEIGHTS(2), w3 = WEIGHTS(3);
    ADD(0) ADD(1) ADD(2) ADD(3) ADD(4) ADD(5)
  }
  const __m256 z0 = ZEROS(0), z1 = rows <= 2 ? ZEROS(8) : z0;
  END(0) END(1) END(2) END(3) END(4) END(5)
#undef WEIGHTS
#undef BEGIN
#undef SUM
#undef ADD
#undef ZEROS
#undef END
}

TARGET ALWAYS_INLINE void rows_avx2(const struct integer_product *p, int64_t block, int64_t row, const int rows,
                                    const int has_6_bits) {
  const int64_t spans = spans_of(p), row_bytes = int8_spans_row_bytes(p), span_bytes = int8_spans_block_bytes(p) / spans;
  const uint8_t *weights = (const uint8_t *)p->weights + block * spans * span_bytes;
  const uint8_t *x = p->integers + row * row_bytes, *of_x = x + 2 * spans * p->group;
  const float *scales = p->scales + block * spans * AVX2_WIDTH;
  float totals[AVX2_ROWS * AVX2_WIDTH] = {0};
  for (int64_t span = 0; span < spans; span++, weights += span_bytes, scales += AVX2_WIDTH) {
#define PART(at)                                                                                                        \
  span_avx2(p, weights + at, weights + AVX2_WIDTH, x + span * 2 * p->group, of_x + span * (int64_t)sizeof(struct span_scale), \
            row_bytes, scales + at, rows, has_6_bits, at, totals + at);
    PART(0)
    if (rows > 2) PART(8)
#undef PART
  }
  for (int r = 0; r < rows; r++) integer_finish_row(p, block, row + r, totals + r * AVX2_WIDTH, AVX2_WIDTH);
}

TARGET ALWAYS_INLINE void all_rows_avx2(const struct integer_product *p, int64_t block, const int has_6_bits) {
  int64_t row = 0;
  for (; row + AVX2_ROWS <= p->rows; row += AVX2_ROWS) rows_avx2(p, block, row, AVX2_ROWS, has_6_bits);
  switch (p->rows - row) {
    case 1: rows_avx2(p, block, row, 1, has_6_bits); break;
    case 2: rows_avx2(p, block, row, 2, has_6_bits); break;
    case 3: rows_avx2(p, block, row, 3, has_6_bits); break;
    case 4: rows_avx2(p, block, row, 4, has_6_bits); break;
    case 5: rows_avx2(p, block, row, 5, has_6_bits); break;
  }
}

TARGET static void block_avx2(const struct integer_product *p, int64_t block) {
  if (has_6_bits(p))
    all_rows_avx2(p, block, 1);
  else
    all_rows_avx2(p, block, 0);
}
#undef TARGET

/* ---- AVX-512 with VNNI: four products of bytes in 32 bits ---- */
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma")))
enum { VNNI_WIDTH = 64, VNNI_ROWS = 3 };

TARGET static void round_vnni(const struct integer_product *p, int64_t row) { round_spans(p, row, 1); }

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

/* A block for up to three rows, which are six planes. The sums have names, as GCC keeps an array of them in memory. */
TARGET ALWAYS_INLINE void rows_vnni(const struct integer_product *p, int64_t block, int64_t row, const int rows,
                                    const int has_6_bits) {
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
    weights += VNNI_WIDTH * ZERO_BYTES;
    BEGIN(0) BEGIN(1) BEGIN(2) BEGIN(3) BEGIN(4) BEGIN(5)
    for (int64_t at = 0; at < size; at += GROUP, weights += VNNI_WIDTH * (has_6_bits ? 3 : 4)) {
      __m512i w0 = _mm512_loadu_si512(weights), w1 = _mm512_loadu_si512(weights + 64);
      __m512i w2 = _mm512_loadu_si512(weights + 128), w3;
      if (has_6_bits) {
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
    for (int r = 0; r < rows; r++)
      add_vnni(totals[r], sums[2 * r], sums[2 * r + 1], (const void *)(of_x + r * row_bytes), zeros, scales);
  }
  for (int r = 0; r < rows; r++) integer_finish_row(p, block, row + r, totals[r], VNNI_WIDTH);
#undef BEGIN
#undef ADD
#undef END
}

TARGET ALWAYS_INLINE void all_rows_vnni(const struct integer_product *p, int64_t block, const int has_6_bits) {
  int64_t row = 0;
  for (; row + VNNI_ROWS <= p->rows; row += VNNI_ROWS) rows_vnni(p, block, row, VNNI_ROWS, has_6_bits);
  if (p->rows - row == 2) rows_vnni(p, block, row, 2, has_6_bits);
  if (p->rows - row == 1) rows_vnni(p, block, row, 1, has_6_bits);
}

TARGET static void block_vnni(const struct integer_product *p, int64_t block) {
  if (has_6_bits(p))
    all_rows_vnni(p, block, 1);
  else
    all_rows_vnni(p, block, 0);
}
#undef TARGET
#endif

void int8_spans_round_row(const struct integer_product *p, int64_t row) {
#ifdef __x86_64__
  (is_avx2(p->level) ? round_avx2 : round_vnni)(p, row);
#else
  (void)p, (void)row;
#endif
}

void int8_spans_multiply_block(const struct integer_product *p, int64_t block) {
#ifdef __x86_64__
  (is_avx2(p->level) ? block_avx2 : block_vnni)(p, block);
#else
  (void)p, (void)block;
#endif
}

/* Rows of float32 or bfloat16, multiplied with k-quants as GGUF files have them: Q4_K, Q5_K and Q6_K.

   A super-block is 256 inputs of an output: weight = d * scale * number - least * minimum. 16 inputs share a scale of 8 bits
   with a sign, 32 a minimum, which Q6_K lacks. Numbers have a sign, too, so that 6 bits do for all. Blocks of outputs lie as
   [block][super-block]: scales [16][output]; if one of the outputs has minima, those [8][output] and `least` [output];
   then numbers, to which 32 is added, in the order of int8_spans.c. `scales` are `d`, [block][super-block][output].

   32 inputs of a row are rounded to 15 bits with a power of two of their own. Scales times numbers have 13 bits, so a sum of
   32 products is an integer of 32 bits, exact; then a few operations with numbers, which all levels do alike: a row has the
   same bits beside any others. Rows that are multiplied at once share the work of unpacking. */
#include "integer_rows.h"

enum { SUPER_BLOCK = 256, SCALED = 16, ROUNDED = 32, CHUNK = 128, MAX_ROWS = 96, MIDDLE = 32, FETCHED = 6144 };

/* Of 32 inputs of a row. */
struct rounded {
  float power;       /* of two */
  float sum;         /* of the integers, times the power */
  int32_t middle[2]; /* of 16 each: 32 times their sum */
};

static int is_avx2(int64_t level) { return level == K_QUANTS_AVX2 || level == K_MINIMA_AVX2; }

static int has_minima(int64_t level) { return level == K_MINIMA_AVX2 || level == K_MINIMA_VNNI; }

/* The integers of a row, then what is said of each 32. */
int64_t k_quants_row_bytes(const struct integer_product *p) {
  return 2 * p->inputs + p->inputs / ROUNDED * (int64_t)sizeof(struct rounded);
}

int64_t k_quants_block_bytes(const struct integer_product *p) {
  const int64_t minima = has_minima(p->level) ? SUPER_BLOCK / ROUNDED + (int64_t)sizeof(float) : 0;
  return p->inputs / SUPER_BLOCK * integer_width(p->level) * (SUPER_BLOCK / SCALED + minima + SUPER_BLOCK * 6 / 8);
}

/* The largest is from 8,192 to 16,383. Of four, the second and the third change places: see `expand`. Numbers that are tiny
   or none: no integers. */
ALWAYS_INLINE struct rounded round_numbers(const float *numbers, int16_t *to) {
  uint32_t largest = 0;
  for (int i = 0; i < ROUNDED; i++) {
    uint32_t bits;
    memcpy(&bits, numbers + i, 4);
    bits &= 0x7fffffff;
    largest = bits > largest ? bits : largest;
  }
  int32_t exponent = (int32_t)(largest >> 23); /* the largest is in [2^(exponent - 127), twice that) */
  if ((largest & 0x7fffff) >= 0x7ffe00) exponent++;
  if (exponent < 32 || largest >= 0x7f800000) {
    memset(to, 0, ROUNDED * sizeof *to);
    return (struct rounded){largest >= 0x7f800000 ? NAN : 0, 0, {0, 0}};
  }
  const uint32_t bits = (uint32_t)(exponent - 13) << 23, inverse_bits = (uint32_t)(267 - exponent) << 23;
  float power, inverse;
  memcpy(&power, &bits, 4);
  memcpy(&inverse, &inverse_bits, 4);
  int32_t integers[ROUNDED], first = 0, second = 0;
  for (int i = 0; i < ROUNDED; i++) integers[i] = (int32_t)rintf(numbers[i] * inverse);
  for (int i = 0; i < SCALED; i++) first += integers[i], second += integers[SCALED + i];
  for (int i = 0; i < ROUNDED; i += GROUP) {
    to[i] = (int16_t)integers[i], to[i + 1] = (int16_t)integers[i + 2];
    to[i + 2] = (int16_t)integers[i + 1], to[i + 3] = (int16_t)integers[i + 3];
  }
  return (struct rounded){power, (float)(first + second) * power, {MIDDLE * first, MIDDLE * second}};
}

ALWAYS_INLINE void round_row(const struct integer_product *p, int64_t row) {
  int16_t *to = (int16_t *)(p->integers + row * k_quants_row_bytes(p));
  struct rounded *of = (struct rounded *)(to + p->inputs);
  for (int64_t first = 0; first < p->inputs; first += ROUNDED, of++) {
    float numbers[ROUNDED];
    integer_load_row(p, row, first, ROUNDED, numbers);
    *of = round_numbers(numbers, to + first);
  }
}

#ifdef __x86_64__
#include <immintrin.h>

/* Half a super-block of all outputs of a block: integers of 16 bits, two inputs of each output and the next two. */
struct chunk {
  const uint8_t *scales, *minima, *numbers;
  const float *d, *least;
};

ALWAYS_INLINE struct chunk chunk_of(const struct integer_product *p, int64_t block, int64_t number, const int width) {
  const int64_t size = k_quants_block_bytes(p) / (p->inputs / SUPER_BLOCK), super_block = number / 2, half = number % 2;
  const uint8_t *at = (const uint8_t *)p->weights + (block * (p->inputs / SUPER_BLOCK) + super_block) * size;
  struct chunk c = {at + half * width * (CHUNK / SCALED), NULL, NULL, NULL, NULL};
  at += width * (SUPER_BLOCK / SCALED);
  if (has_minima(p->level)) {
    c.minima = at + half * width * (CHUNK / ROUNDED), at += width * (SUPER_BLOCK / ROUNDED);
    c.least = (const float *)at, at += width * sizeof(float);
  }
  c.numbers = at + half * width * (CHUNK * 6 / 8);
  c.d = p->scales + (block * (p->inputs / SUPER_BLOCK) + super_block) * width;
  return c;
}

/* A block for some rows: `expand` makes integers of 16 bits and floats of a chunk, which `some_rows` multiplies. */
#define MULTIPLY_BLOCK(width, rows_at_once, expand, some_rows, one_row)                                 \
  const int64_t row_bytes = k_quants_row_bytes(p);                                                      \
  _Alignas(64) int16_t weights[CHUNK * (width)];                                                        \
  _Alignas(64) float minima[CHUNK / ROUNDED * (width)], totals[MAX_ROWS * (width)];                     \
  for (int64_t first = 0; first < p->rows; first += MAX_ROWS) {                                         \
    const int64_t rows = p->rows - first < MAX_ROWS ? p->rows - first : MAX_ROWS;                       \
    memset(totals, 0, rows * (width) * sizeof *totals);                                                 \
    for (int64_t number = 0; number < p->inputs / CHUNK; number++) {                                    \
      const struct chunk c = chunk_of(p, block, number, width);                                         \
      const uint8_t *x = p->integers + first * row_bytes + number * CHUNK * 2;                          \
      const uint8_t *of_x = p->integers + first * row_bytes + p->inputs * 2 +                           \
                            number * (CHUNK / ROUNDED) * (int64_t)sizeof(struct rounded);               \
      if (p->rows == 1) {                                                                               \
        one_row(&c, minima, x, (const struct rounded *)of_x, totals);                                   \
        continue;                                                                                       \
      }                                                                                                 \
      expand(&c, weights, minima);                                                                      \
      int64_t row = 0;                                                                                  \
      for (; row + (rows_at_once) <= rows; row += (rows_at_once)) SOME(some_rows, rows_at_once, width); \
      switch (rows - row) {                                                                             \
        case 1: SOME(some_rows, 1, width); break;                                                       \
        case 2: SOME(some_rows, 2, width); break;                                                       \
        case 3: SOME(some_rows, 3, width); break;                                                       \
        case 4: SOME(some_rows, 4, width); break;                                                       \
        case 5: SOME(some_rows, 5, width); break;                                                       \
      }                                                                                                 \
    }                                                                                                   \
    for (int64_t row = 0; row < rows; row++)                                                            \
      integer_finish_row(p, block, first + row, totals + row * (width), width);                         \
  }
#define SOME(some_rows, count, width) \
  some_rows(&c, weights, minima, x + row * row_bytes, of_x + row * row_bytes, row_bytes, totals + row * (width), count)

/* ---- AVX2 ---- */
#define TARGET __attribute__((target("avx2,fma")))
enum { AVX2_WIDTH = 16, ROWS = 6 };

TARGET static void round_avx2(const struct integer_product *p, int64_t row) { round_row(p, row); }

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

TARGET static void block_avx2(const struct integer_product *p, int64_t block) {
  MULTIPLY_BLOCK(AVX2_WIDTH, ROWS, expand_avx2, rows_avx2, one_row_avx2)
}
#undef TARGET

/* ---- AVX-512 with VNNI ---- */
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma")))
enum { VNNI_WIDTH = 64 };

TARGET static void round_vnni(const struct integer_product *p, int64_t row) { round_row(p, row); }

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

TARGET static void block_vnni(const struct integer_product *p, int64_t block) {
  MULTIPLY_BLOCK(VNNI_WIDTH, ROWS, expand_vnni, rows_vnni, one_row_vnni)
}
#undef TARGET
#endif

void k_quants_round_row(const struct integer_product *p, int64_t row) {
#ifdef __x86_64__
  (is_avx2(p->level) ? round_avx2 : round_vnni)(p, row);
#else
  (void)p, (void)row;
#endif
}

void k_quants_multiply_block(const struct integer_product *p, int64_t block) {
#ifdef __x86_64__
  (is_avx2(p->level) ? block_avx2 : block_vnni)(p, block);
#else
  (void)p, (void)block;
#endif
}

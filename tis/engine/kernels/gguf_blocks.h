/* Blocks of GGUF files, and the parts of them that several files read. */
#ifndef TIS_GGUF_BLOCKS_H
#define TIS_GGUF_BLOCKS_H

#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct gguf_blocks {
  const uint8_t *blocks; /* [rows, row_bytes] */
  void *out;             /* float32 [rows, inputs], or blocks of int4_product.c or k_quants.h */
  float *scales;         /* of outputs, for 4 bits; [block][super-block][output] of k-quants */
  int64_t rows, inputs, row_bytes, type, threads;
  int64_t first, width;  /* for blocks: the number of the first row among the outputs, and outputs of a block */
  int64_t has_minima;    /* of k-quants: whether blocks have room for them */
};

/* As numbered by ggml. */
enum { Q4_0 = 2, Q4_1 = 3, Q5_0 = 6, Q5_1 = 7, Q8_0 = 8, Q4_K = 12, Q5_K = 13, Q6_K = 14 };
enum { Q4_K_BYTES = 144, Q5_K_BYTES = 176, Q6_K_BYTES = 210 };

#ifdef __x86_64__
#include <immintrin.h>

#define FN __attribute__((target("avx2,f16c"))) static
#define IN __attribute__((target("avx2,f16c"), always_inline)) static inline

IN float half_at(const uint8_t *at) {
  uint16_t bits;
  memcpy(&bits, at, sizeof bits);
  return _cvtsh_ss(bits);
}

/* The six bits each of a scale and a minimum, of one of eight groups. */
IN void scale_and_minimum(const uint8_t *packed, int group, uint8_t *scale, uint8_t *minimum) {
  if (group < 4) {
    *scale = packed[group] & 63, *minimum = packed[group + 4] & 63;
  } else {
    *scale = (packed[group + 4] & 15) | (packed[group - 4] >> 6) << 4;
    *minimum = (packed[group + 4] >> 4) | (packed[group] >> 6) << 4;
  }
}

/* 32 numbers of one of eight groups. */
IN void q4_k_numbers(const uint8_t *block, int group, uint8_t *numbers) {
  const uint8_t *from = block + 16 + group / 2 * 32;
  const int shift = group % 2 * 4;
  for (int i = 0; i < 32; i++) numbers[i] = from[i] >> shift & 15;
}

IN void q5_k_numbers(const uint8_t *block, int group, uint8_t *numbers) {
  const uint8_t *from = block + 48 + group / 2 * 32, *fifth = block + 16;
  const int shift = group % 2 * 4;
  for (int i = 0; i < 32; i++) numbers[i] = (from[i] >> shift & 15) | (fifth[i] >> group & 1) << 4;
}

/* To which 32 is added. */
IN void q6_k_numbers(const uint8_t *block, int group, uint8_t *numbers) {
  const uint8_t *low = block + group / 4 * 64 + group % 2 * 32, *high = block + 128 + group / 4 * 32;
  const int low_shift = group % 4 / 2 * 4, high_shift = group % 4 * 2;
  for (int i = 0; i < 32; i++) numbers[i] = (low[i] >> low_shift & 15) | (high[i] >> high_shift & 3) << 4;
}
#endif

#endif

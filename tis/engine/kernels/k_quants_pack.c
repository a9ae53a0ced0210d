/* K-quants of GGUF files, put into the blocks of k_quants.h: numbers, scales and minima stay. */
#include "gguf_blocks.h"

#ifdef __x86_64__
enum { GROUPS = 8, ROUNDED = 32, SUPER_BLOCK = 256, MIDDLE = 32 };

struct super_block {
  uint8_t numbers[SUPER_BLOCK]; /* to which 32 is added */
  int8_t scales[2 * GROUPS];
  uint8_t minima[GROUPS];
  float d, least;
};

FN void read_q6_k(const uint8_t *block, struct super_block *to) {
  for (int group = 0; group < GROUPS; group++) q6_k_numbers(block, group, to->numbers + ROUNDED * group);
  memcpy(to->scales, block + 192, sizeof to->scales);
  memset(to->minima, 0, sizeof to->minima);
  to->d = half_at(block + 208), to->least = 0;
}

FN void read_with_minima(const uint8_t *block, int64_t type, struct super_block *to) {
  for (int group = 0; group < GROUPS; group++) {
    uint8_t scale, *numbers = to->numbers + ROUNDED * group;
    scale_and_minimum(block + 4, group, &scale, to->minima + group);
    to->scales[2 * group] = to->scales[2 * group + 1] = (int8_t)scale;
    if (type == Q4_K)
      q4_k_numbers(block, group, numbers);
    else
      q5_k_numbers(block, group, numbers);
    for (int i = 0; i < ROUNDED; i++) numbers[i] += MIDDLE;
  }
  to->d = half_at(block), to->least = half_at(block + 2);
}

/* `to` is zero before. */
FN void write(const struct super_block *from, int has_minima, int64_t width, int64_t place, uint8_t *to) {
  for (int group = 0; group < 2 * GROUPS; group++, to += width) to[place] = (uint8_t)from->scales[group];
  if (has_minima) {
    for (int group = 0; group < GROUPS; group++, to += width) to[place] = from->minima[group];
    memcpy(to + place * sizeof(float), &from->least, sizeof(float));
    to += width * sizeof(float);
  }
  const int64_t vector = place / (width / 4), at = place % (width / 4) * 4; /* of the four of a step */
  for (int i = 0; i < SUPER_BLOCK; i += 4, to += 3 * width)
    for (int j = 0; j < 4; j++) {
      const uint8_t number = from->numbers[i + j];
      if (vector < 3)
        to[vector * width + at + j] |= number;
      else /* in the upper two bits of the others */
        for (int of = 0; of < 3; of++) to[of * width + at + j] |= (uint8_t)((number >> 2 * of & 3) << 6);
    }
}

FN void pack_row(const struct gguf_blocks *a, int64_t row) {
  const int64_t super_blocks = a->inputs / SUPER_BLOCK, output = a->first + row, block = output / a->width;
  const int64_t minima_bytes = a->has_minima ? GROUPS + (int64_t)sizeof(float) : 0;
  const int64_t size = a->width * (2 * GROUPS + minima_bytes + SUPER_BLOCK * 6 / 8);
  const uint8_t *from = a->blocks + row * a->row_bytes;
  for (int64_t number = block * super_blocks; number < (block + 1) * super_blocks; number++) {
    struct super_block read;
    if (a->type == Q6_K) {
      read_q6_k(from, &read), from += Q6_K_BYTES;
    } else {
      read_with_minima(from, a->type, &read), from += a->type == Q4_K ? Q4_K_BYTES : Q5_K_BYTES;
    }
    a->scales[number * a->width + output % a->width] = read.d;
    write(&read, (int)a->has_minima, a->width, output % a->width, (uint8_t *)a->out + number * size);
  }
}
#endif

/* Of Q4_K, Q5_K (`has_minima`) and Q6_K; the blocks of `out` are zero before. Outputs of one block share bytes, so a thread
   takes a block. */
EXPORT void tis_gguf_k_quants(const struct gguf_blocks *a) {
#ifdef __x86_64__
  const int64_t begin = a->first / a->width, end = (a->first + a->rows + a->width - 1) / a->width;
#pragma omp parallel for num_threads((int)a->threads) schedule(static) if (a->threads > 1)
  for (int64_t block = begin; block < end; block++) {
    const int64_t last = (block + 1) * a->width - a->first;
    for (int64_t row = block == begin ? 0 : block * a->width - a->first; row < a->rows && row < last; row++) pack_row(a, row);
  }
#else
  (void)a;
#endif
}

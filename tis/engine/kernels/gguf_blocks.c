/* Weights in the blocks of GGUF files: turned into float32, or their 4-bit numbers put into the blocks of int4_product.c.

   Products and differences are rounded one by one, as the reference (gguf.quants) does: floats are equal bit for bit. */
#include <math.h>

#include "gguf_blocks.h"

#ifdef __x86_64__
IN void small_block(const uint8_t *block, int64_t type, float *out) {
  const float d = half_at(block);
  const int has_minimum = type == Q4_1 || type == Q5_1, has_five = type == Q5_0 || type == Q5_1;
  const float minimum = has_minimum ? half_at(block + 2) : 0;
  const uint8_t *at = block + (has_minimum ? 4 : 2);
  const int middle = has_minimum ? 0 : has_five ? 16 : 8;
  uint32_t fifth = 0;
  if (has_five) memcpy(&fifth, at, sizeof fifth), at += sizeof fifth;
  for (int i = 0; i < 16; i++) {
    const int low = (at[i] & 15) | (int)(fifth >> i & 1) << 4, high = at[i] >> 4 | (int)(fifth >> (i + 16) & 1) << 4;
    out[i] = d * (float)(low - middle), out[i + 16] = d * (float)(high - middle);
    if (has_minimum) out[i] += minimum, out[i + 16] += minimum;
  }
}

IN void q8_0_block(const uint8_t *block, float *out) {
  const float d = half_at(block);
  const int8_t *numbers = (const int8_t *)block + 2;
  for (int i = 0; i < 32; i++) out[i] = d * (float)numbers[i];
}

/* Q4_K or Q5_K. */
IN void block_with_minima(const uint8_t *block, int64_t type, float *out) {
  const float d = half_at(block), least = half_at(block + 2);
  for (int group = 0; group < 8; group++) {
    uint8_t numbers[32], scale, minimum;
    scale_and_minimum(block + 4, group, &scale, &minimum);
    if (type == Q4_K)
      q4_k_numbers(block, group, numbers);
    else
      q5_k_numbers(block, group, numbers);
    const float factor = d * (float)scale, offset = least * (float)minimum;
    for (int i = 0; i < 32; i++) out[32 * group + i] = factor * (float)numbers[i] - offset;
  }
}

IN void q6_k_block(const uint8_t *block, float *out) {
  const float d = half_at(block + 208);
  const int8_t *scales = (const int8_t *)block + 192;
  for (int group = 0; group < 8; group++) {
    uint8_t numbers[32];
    q6_k_numbers(block, group, numbers);
    const float first = d * (float)scales[2 * group], second = d * (float)scales[2 * group + 1];
    for (int i = 0; i < 32; i++) out[32 * group + i] = (i < 16 ? first : second) * (float)(numbers[i] - 32);
  }
}

struct kind {
  int numbers, bytes; /* of a block */
};

static struct kind kind_of(int64_t type) {
  switch (type) {
    case Q4_0: return (struct kind){32, 18};
    case Q4_1: return (struct kind){32, 20};
    case Q5_0: return (struct kind){32, 22};
    case Q5_1: return (struct kind){32, 24};
    case Q8_0: return (struct kind){32, 34};
    case Q4_K: return (struct kind){256, Q4_K_BYTES};
    case Q5_K: return (struct kind){256, Q5_K_BYTES};
    case Q6_K: return (struct kind){256, Q6_K_BYTES};
    default: return (struct kind){0, 0};
  }
}

FN void floats_of_row(const struct gguf_blocks *a, int64_t row) {
  const struct kind kind = kind_of(a->type);
  const uint8_t *block = a->blocks + row * a->row_bytes;
  float *out = (float *)a->out + row * a->inputs;
  for (int64_t at = 0; at < a->inputs; at += kind.numbers, block += kind.bytes) switch (a->type) {
      case Q8_0: q8_0_block(block, out + at); break;
      case Q4_K: block_with_minima(block, Q4_K, out + at); break;
      case Q5_K: block_with_minima(block, Q5_K, out + at); break;
      case Q6_K: q6_k_block(block, out + at); break;
      default: small_block(block, a->type, out + at);
    }
}

enum { INT4_GROUP = 32, MAX_GROUPS = 4096 };

struct four { /* a group as the file has it: scale * number - offset */
  float scale, offset;
  uint8_t flipped; /* its scale is negative: 15 - number */
};

IN struct four four_of(float scale, float offset) {
  if (scale < 0) return (struct four){-scale, -15 * scale + offset, 1};
  return (struct four){scale, offset, 0};
}

IN struct four group_of(const uint8_t *row, int64_t type, int64_t group) {
  if (type == Q4_0) {
    const float d = half_at(row + group * 18);
    return four_of(d, 8 * d);
  }
  if (type == Q4_1) return four_of(half_at(row + group * 20), -half_at(row + group * 20 + 2));
  const uint8_t *block = row + group / 8 * Q4_K_BYTES;
  uint8_t scale, minimum;
  scale_and_minimum(block + 4, (int)(group % 8), &scale, &minimum);
  return four_of(half_at(block) * (float)scale, half_at(block + 2) * (float)minimum);
}

IN void numbers_of(const uint8_t *row, int64_t type, int64_t group, int is_flipped, uint8_t *numbers) {
  if (type == Q4_K) {
    q4_k_numbers(row + group / 8 * Q4_K_BYTES, (int)(group % 8), numbers);
  } else {
    const uint8_t *from = row + group * (type == Q4_0 ? 18 : 20) + (type == Q4_0 ? 2 : 4);
    for (int i = 0; i < 16; i++) numbers[i] = from[i] & 15, numbers[i + 16] = from[i] >> 4;
  }
  for (int i = 0; i < 32 && is_flipped; i++) numbers[i] = 15 - numbers[i];
}

/* The bytes of scale and offset with the smallest error: the numbers themselves stay. */
FN void best_bytes(const uint8_t *numbers, struct four group, float unit, int *scale, int *offset) {
  int sum = 0, squares = 0;
  for (int i = 0; i < 32; i++) sum += numbers[i], squares += numbers[i] * numbers[i];
  const int near_scale = (int)rintf(group.scale / unit), near_offset = (int)rintf(group.offset / (16 * unit));
  float smallest = INFINITY;
  for (int s = near_scale - 1; s <= near_scale + 1; s++)
    for (int o = near_offset - 1; o <= near_offset + 1; o++) {
      if (s < 0 || s > 255 || o < 0 || o > 255) continue;
      const float ds = unit * s - group.scale, d0 = 16 * unit * o - group.offset;
      const float error = ds * ds * squares - 2 * ds * d0 * sum + 32 * d0 * d0;
      if (error < smallest) smallest = error, *scale = s, *offset = o;
    }
}

/* Returns whether the row fits: offsets are at least 0, and at most 16 times the largest scale. */
FN int four_bits_of_row(const struct gguf_blocks *a, int64_t row) {
  const uint8_t *from = a->blocks + row * a->row_bytes;
  const int64_t groups = a->inputs / INT4_GROUP, output = a->first + row, width = a->width, place = output % width;
  const int64_t group_bytes = width * (2 + INT4_GROUP / 2);
  struct four all[MAX_GROUPS];
  float unit = 0;
  for (int64_t group = 0; group < groups; group++) {
    all[group] = group_of(from, a->type, group);
    if (!isfinite(all[group].scale) || !isfinite(all[group].offset) || all[group].offset < 0) return 0;
    const float least = fmaxf(all[group].scale / 255, all[group].offset / (16 * 255));
    unit = least > unit ? least : unit;
  }
  a->scales[output] = unit;
  if (!(unit > 0)) return 1;
  uint8_t *to = (uint8_t *)a->out + output / width * groups * group_bytes;
  for (int64_t group = 0; group < groups; group++, to += group_bytes) {
    uint8_t numbers[INT4_GROUP];
    int scale = 0, offset = 0;
    numbers_of(from, a->type, group, all[group].flipped, numbers);
    best_bytes(numbers, all[group], unit, &scale, &offset);
    to[place] = scale, to[width + place] = offset;
    for (int i = 0; i < INT4_GROUP; i += 8)
      for (int j = 0; j < 4; j++)
        to[2 * width + (i / 8 * width + place) * 4 + j] = numbers[i + j] | numbers[i + 4 + j] << 4;
  }
  return 1;
}
#endif

/* Numbers of a block, 0: this type is not known here. */
EXPORT int64_t tis_gguf_numbers(int64_t type) {
#ifdef __x86_64__
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") ? kind_of(type).numbers : 0;
#else
  (void)type;
  return 0;
#endif
}

/* `inputs` are whole blocks. */
EXPORT void tis_gguf_floats(const struct gguf_blocks *a) {
#ifdef __x86_64__
#pragma omp parallel for num_threads((int)a->threads) schedule(static) if (a->threads > 1)
  for (int64_t row = 0; row < a->rows; row++) floats_of_row(a, row);
#else
  (void)a;
#endif
}

/* Of types with 4-bit numbers. The blocks of `out` are zero before; at most 131,072 inputs. Returns how many rows do not
   fit, which then are left out. */
EXPORT int64_t tis_gguf_int4(const struct gguf_blocks *a) {
  int64_t left_out = 0;
#ifdef __x86_64__
#pragma omp parallel for num_threads((int)a->threads) schedule(static) if (a->threads > 1) reduction(+ : left_out)
  for (int64_t row = 0; row < a->rows; row++) left_out += !four_bits_of_row(a, row);
#else
  (void)a;
#endif
  return left_out;
}

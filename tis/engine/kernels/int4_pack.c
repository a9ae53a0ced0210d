/* Rounds weights to the 4 bits of int4_product.c. No calibration: of each group the scale and the offset that leave the
   smallest sum of squared errors, among some that are near to its range. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "integer_product.h"

#define EXPORT __attribute__((visibility("default")))

struct int4_pack {
  const float *weight; /* [outputs, inputs] */
  int64_t outputs, inputs;
  int64_t width; /* of a block; `outputs` behind the last block are zero */
  uint8_t *blocks;
  float *scales; /* [outputs] */
  int64_t threads;
};

#ifdef __x86_64__
#include "vector_avx2.h"

enum { PACKED_GROUP = 32, PARTS = PACKED_GROUP / W, MAX_GROUPS = 4096, NO_NUMBER = INT_MAX };
/* 15 is the range of the group itself. */
enum { CANDIDATES = 12 };
#define FIRST_RANGE 14.0f
#define RANGE_STEP 0.2f

struct fit {
  float scale, offset; /* numbers are scale * (0 to 15) - offset */
};

struct group { /* of the weights of an output */
  vec of[PARTS];
};

/* Times `power`. `count` may be less than a group: the rest is zero. */
IN struct group load_group(const float *from, int64_t count, float power) {
  float padded[PACKED_GROUP] = {0};
  struct group group;
  if (count < PACKED_GROUP) memcpy(padded, from, count * sizeof(float)), from = padded;
  for (int i = 0; i < PARTS; i++) group.of[i] = v_mul(v_load_float(from + i * W), v_set(power));
  return group;
}

IN vec rounded(vec x, vec inverse, vec begin) { return v_max(v_zero(), v_min(v_set(15), v_round(v_fma(x, inverse, begin)))); }

/* Numbers are chosen with a scale that is a little too small or too large, and fitted by a line through the weights. */
FN struct fit fit_of(const struct group *x) {
  vec least = v_zero(), most = v_zero(), sums = v_zero(), squares = v_zero();
  for (int i = 0; i < PARTS; i++) {
    least = v_min(least, x->of[i]), most = v_max(most, x->of[i]);
    sums = v_add(sums, x->of[i]), squares = v_fma(x->of[i], x->of[i], squares);
  }
  const float low = -v_largest(v_sub(v_zero(), least)), range = v_largest(most) - low;
  const float sum = v_sum(sums), square = v_sum(squares);
  struct fit best = {0, 0};
  if (!(range > 1e-30f)) return best;
  best = (struct fit){range / 15, -low};
  float smallest = INFINITY;
  for (int step = 0; step <= CANDIDATES; step++) {
    const float inverse = (FIRST_RANGE + RANGE_STEP * step) / range;
    vec ones = v_zero(), twos = v_zero(), both = v_zero();
    for (int i = 0; i < PARTS; i++) {
      const vec number = rounded(x->of[i], v_set(inverse), v_set(-low * inverse));
      ones = v_add(ones, number), twos = v_fma(number, number, twos), both = v_fma(number, x->of[i], both);
    }
    const float n = v_sum(ones), nn = v_sum(twos), nx = v_sum(both), divisor = PACKED_GROUP * nn - n * n;
    if (!(divisor > 0)) continue;
    float scale = (PACKED_GROUP * nx - n * sum) / divisor, begin = (nn * sum - n * nx) / divisor;
    if (begin > 0) begin = 0, scale = nx / nn;
    const float error = square - 2 * (scale * nx + begin * sum) + scale * scale * nn + 2 * scale * begin * n +
                        PACKED_GROUP * begin * begin;
    if (error < smallest && scale > 0) smallest = error, best = (struct fit){scale, -begin};
  }
  return best;
}

struct bytes {
  int scale, offset;
};

static int within(int number, int low) { return number < low ? low : number > 255 ? 255 : number; }

/* The bytes near to the fit with the smallest error. */
FN struct bytes bytes_of(const struct group *x, struct fit fit, float unit) {
  struct bytes best = {0, 0};
  if (!(fit.scale > 0)) return best;
  const int scale = (int)rintf(fit.scale / unit), offset = (int)rintf(fit.offset / (16 * unit));
  float smallest = INFINITY;
  for (int s = scale - 1; s <= scale + 1; s++)
    for (int o = offset - 1; o <= offset + 1; o++) {
      const struct bytes tried = {within(s, 1), within(o, 0)};
      const vec inverse = v_set(1 / (unit * tried.scale)), begin = v_set(16.0f * tried.offset / tried.scale);
      vec errors = v_zero();
      for (int i = 0; i < PARTS; i++) {
        const vec number = rounded(x->of[i], inverse, begin);
        const vec error = v_fma(number, v_set(unit * tried.scale), v_sub(v_set(-16 * unit * tried.offset), x->of[i]));
        errors = v_fma(error, error, errors);
      }
      const float error = v_sum(errors);
      if (error < smallest) smallest = error, best = tried;
    }
  return best;
}

/* The largest weight is less than two to that power. NO_NUMBER: one is none, or infinite. */
static int exponent_of(const float *weights, int64_t count) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < count; i++) {
    uint32_t bits;
    memcpy(&bits, weights + i, 4);
    bits &= 0x7fffffff;
    largest = bits > largest ? bits : largest;
  }
  if (largest >= 0x7f800000) return NO_NUMBER;
  return (int)(largest >> 23) - 126;
}

/* One output. Its weights are divided by a power of two: so their squares neither overflow nor vanish. */
FN void pack_output(const struct int4_pack *a, int64_t output) {
  const int64_t groups = (a->inputs + PACKED_GROUP - 1) / PACKED_GROUP, width = a->width;
  const int64_t group_bytes = width * (2 + PACKED_GROUP / 2);
  const float *weights = a->weight + output * a->inputs;
  uint8_t *to = a->blocks + output / width * groups * group_bytes;
  const int64_t place = output % width;
  const int exponent = exponent_of(weights, a->inputs);
  if (exponent == NO_NUMBER) {
    a->scales[output] = NAN;
    return;
  }
  const float power = ldexpf(1, -exponent);
  struct fit fits[MAX_GROUPS];
  float largest = 0;
  for (int64_t group = 0; group < groups; group++) {
    const struct group x = load_group(weights + group * PACKED_GROUP, a->inputs - group * PACKED_GROUP, power);
    fits[group] = fit_of(&x);
    largest = fits[group].scale > largest ? fits[group].scale : largest;
  }
  const float unit = largest / 255;
  a->scales[output] = ldexpf(unit, exponent);
  for (int64_t group = 0; group < groups && unit > 0; group++, to += group_bytes) {
    const struct group x = load_group(weights + group * PACKED_GROUP, a->inputs - group * PACKED_GROUP, power);
    const struct bytes bytes = bytes_of(&x, fits[group], unit);
    to[place] = bytes.scale, to[width + place] = bytes.offset;
    if (!bytes.scale) continue;
    float numbers[PACKED_GROUP];
    for (int i = 0; i < PARTS; i++)
      v_store_float(numbers + i * W, rounded(x.of[i], v_set(1 / (unit * bytes.scale)), v_set(16.0f * bytes.offset / bytes.scale)));
    for (int i = 0; i < PACKED_GROUP; i += 8)
      for (int j = 0; j < 4; j++)
        to[2 * width + (i / 8 * width + place) * 4 + j] = (uint8_t)numbers[i + j] | (uint8_t)numbers[i + 4 + j] << 4;
  }
}
#endif

/* `blocks` are zero before. At most 131,072 inputs; needs AVX2. */
EXPORT void tis_int4_pack(const struct int4_pack *a) {
#ifdef __x86_64__
#pragma omp parallel for num_threads((int)a->threads) schedule(dynamic, 16) if (a->threads > 1)
  for (int64_t output = 0; output < a->outputs; output++) pack_output(a, output);
#else
  (void)a;
#endif
}

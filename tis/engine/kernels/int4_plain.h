/* The vector of int4_rows.h in plain C. */
#define TARGET
typedef struct {
  int32_t at[LANES];
} NAME(sums);
typedef struct {
  uint8_t at[4 * LANES];
} NAME(bytes);
typedef struct {
  int32_t scales[LANES], offsets[LANES];
} NAME(scales);

IN() NAME(bytes) NAME(load)(const uint8_t *from) {
  NAME(bytes) all;
  memcpy(all.at, from, sizeof all.at);
  return all;
}
IN() NAME(bytes) NAME(low)(NAME(bytes) x) {
  for (int i = 0; i < 4 * LANES; i++) x.at[i] &= 15;
  return x;
}
IN() NAME(bytes) NAME(high)(NAME(bytes) x) {
  for (int i = 0; i < 4 * LANES; i++) x.at[i] >>= 4;
  return x;
}
IN() NAME(sums) NAME(dot)(NAME(sums) sums, NAME(bytes) weights, const int8_t *four) {
  for (int i = 0; i < 4 * LANES; i++) sums.at[i / 4] += weights.at[i] * four[i % 4];
  return sums;
}
IN() NAME(sums) NAME(first)(NAME(bytes) weights, const int8_t *four) { return NAME(dot)((NAME(sums)){{0}}, weights, four); }
IN() NAME(scales) NAME(scales_at)(const uint8_t *scales, const uint8_t *offsets) {
  NAME(scales) of;
  for (int i = 0; i < LANES; i++) of.scales[i] = scales[i], of.offsets[i] = 16 * offsets[i];
  return of;
}
IN() NAME(scales) NAME(zeros_at)(const uint8_t *zeros) {
  NAME(scales) of;
  for (int i = 0; i < LANES; i++) of.scales[i] = 1, of.offsets[i] = zeros[i];
  return of;
}
IN() void NAME(add)(float *totals, NAME(sums) sums, NAME(scales) of, const struct group_scale *x) {
  for (int i = 0; i < LANES; i++)
    totals[i] = totals[i] + (float)(sums.at[i] * of.scales[i]) * x->scale - (float)of.offsets[i] * x->sum;
}
IN() void NAME(add_scaled)(float *totals, NAME(sums) sums, NAME(scales) of, const struct group_scale *x, const float *by) {
  for (int i = 0; i < LANES; i++)
    totals[i] = fmaf((float)sums.at[i] * x->scale - (float)of.offsets[i] * x->sum, by[i], totals[i]);
}

/* Weights in spans: what rows and blocks take, and which instructions multiply them. See int8_spans.h. */
#include "int8_spans.h"

static int is_avx2(int64_t level) {
  return level == INT8_SPANS_AVX2 || level == INT6_AVX2 || level == OFFSETS6_AVX2 || level == OFFSETS8_AVX2;
}

static int has_6_bits(int64_t level) {
  return level == INT6_AVX2 || level == INT6_VNNI || level == OFFSETS6_AVX2 || level == OFFSETS6_VNNI;
}

/* The integers of a row, span by span, and then a `span_scale` for each. With VNNI a span has its high bytes first. */
int64_t int8_spans_row_bytes(const struct integer_product *p) {
  return spans_of(p) * (2 * p->group + (int64_t)sizeof(struct span_scale));
}

int64_t int8_spans_block_bytes(const struct integer_product *p) {
  const int64_t zero_bytes = p->level >= OFFSETS6_AVX2 ? 0 : 1;
  return spans_of(p) * integer_width(p->level) * (zero_bytes + (has_6_bits(p->level) ? p->group / 4 * 3 : p->group));
}

void int8_spans_round_row(const struct integer_product *p, int64_t row) {
#ifdef __x86_64__
  (is_avx2(p->level) ? int8_spans_round_avx2 : int8_spans_round_vnni)(p, row);
#else
  (void)p, (void)row;
#endif
}

void int8_spans_multiply_block(const struct integer_product *p, int64_t block) {
#ifdef __x86_64__
  (is_avx2(p->level) ? int8_spans_block_avx2 : int8_spans_block_vnni)(p, block);
#else
  (void)p, (void)block;
#endif
}

/* K-quants: what rows and blocks take, and which instructions multiply them. See k_quants.h. */
#include "k_quants.h"

static int is_avx2(int64_t level) { return level == K_QUANTS_AVX2 || level == K_MINIMA_AVX2; }

/* The integers of a row, then what is said of each 32. */
int64_t k_quants_row_bytes(const struct integer_product *p) {
  return 2 * p->inputs + p->inputs / ROUNDED * (int64_t)sizeof(struct rounded);
}

int64_t k_quants_block_bytes(const struct integer_product *p) {
  const int64_t minima = has_minima(p->level) ? SUPER_BLOCK / ROUNDED + (int64_t)sizeof(float) : 0;
  return p->inputs / SUPER_BLOCK * integer_width(p->level) * (SUPER_BLOCK / SCALED + minima + SUPER_BLOCK * 6 / 8);
}

void k_quants_round_row(const struct integer_product *p, int64_t row) {
#ifdef __x86_64__
  (is_avx2(p->level) ? k_quants_round_avx2 : k_quants_round_vnni)(p, row);
#else
  (void)p, (void)row;
#endif
}

void k_quants_multiply_block(const struct integer_product *p, int64_t block) {
#ifdef __x86_64__
  (is_avx2(p->level) ? k_quants_block_avx2 : k_quants_block_vnni)(p, block);
#else
  (void)p, (void)block;
#endif
}

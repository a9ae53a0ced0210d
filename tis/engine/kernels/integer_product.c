#include "integer_product.h"

#include "parts.h"

#define EXPORT __attribute__((visibility("default")))

static int is_int4(int64_t level) { return level >= INT4_PLAIN; }

/* How weights of so many bits are multiplied here. NONE: this CPU has no way. */
EXPORT int64_t tis_integer_level(int64_t bits) {
#if defined(SOFTWARE_VNNI)
  return bits == 8 ? NONE : INT4_VNNI;
#elif defined(SOFTWARE_TILES)
  return bits == 8 ? INT8_AMX : INT4_VNNI;
#elif defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return NONE;
  const int has_vnni = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                       __builtin_cpu_supports("avx512vnni");
  if (bits == 4) return has_vnni ? INT4_VNNI : INT4_AVX2;
  return !has_vnni ? INT8_AVX2 : may_use_tiles() ? INT8_AMX : INT8_VNNI;
#else
  (void)bits;
  return NONE;
#endif
}

void integer_round_row(const struct integer_product *p, int64_t row) {
  (is_int4(p->level) ? int4_round_row : int8_round_row)(p, row);
}

int64_t integer_width(int64_t level) {
  return level == INT8_VNNI || level == INT8_AMX || level == INT4_VNNI ? 64 : 16;
}

int64_t integer_row_bytes(const struct integer_product *p) {
  return (is_int4(p->level) ? int4_row_bytes : int8_row_bytes)(p);
}

int64_t integer_block_bytes(const struct integer_product *p) {
  if (is_int4(p->level)) return int4_block_bytes(p);
  return int8_groups(p) * GROUP * integer_width(p->level);
}

void integer_multiply_block(const struct integer_product *p, int64_t block) {
  (is_int4(p->level) ? int4_multiply_block : int8_multiply_block)(p, block);
}

void integer_multiply_parts(const struct integer_product *p, int64_t *next) {
  const int64_t width = integer_width(p->level), blocks = (p->outputs + width - 1) / width;
  for (;;) {
    const int64_t block = __atomic_fetch_add(next, 1, __ATOMIC_RELAXED);
    if (block >= blocks) return;
    integer_multiply_block(p, block);
  }
}

EXPORT void tis_integer_multiply(const struct integer_product *p) {
  int64_t next = 0;
#pragma omp parallel num_threads((int)p->threads) if (p->threads > 1)
  {
#pragma omp for schedule(static)
    for (int64_t row = 0; row < p->rows; row++) integer_round_row(p, row);
    integer_multiply_parts(p, &next);
  }
}

#include "integer_product.h"

#include "parts.h"

#define EXPORT __attribute__((visibility("default")))

/* Rows of a part, where rows are divided: fewer would read the weights too often. */
enum { MIN_ROWS_OF_PART = 48 };

/* One kind of weights. */
struct kind {
  void (*round_row)(const struct integer_product *, int64_t row);
  int64_t (*row_bytes)(const struct integer_product *);
  int64_t (*block_bytes)(const struct integer_product *);
  void (*multiply_block)(const struct integer_product *, int64_t block);
};

static const struct kind *kind_of(int64_t level) {
  static const struct kind int8 = {int8_round_row, int8_row_bytes, int8_block_bytes, int8_multiply_block};
  static const struct kind int4 = {int4_round_row, int4_row_bytes, int4_block_bytes, int4_multiply_block};
  static const struct kind int8_spans = {int8_spans_round_row, int8_spans_row_bytes, int8_spans_block_bytes,
                                         int8_spans_multiply_block};
  static const struct kind k_quants = {k_quants_round_row, k_quants_row_bytes, k_quants_block_bytes, k_quants_multiply_block};
  if (level >= OFFSETS6_AVX2) return &int8_spans;
  if (level >= K_QUANTS_AVX2) return &k_quants;
  return level >= INT8_SPANS_AVX2 ? &int8_spans : level >= INT4_PLAIN ? &int4 : &int8;
}

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

void integer_round_row(const struct integer_product *p, int64_t row) { kind_of(p->level)->round_row(p, row); }

int64_t integer_width(int64_t level) {
  switch (level) {
    case INT8_VNNI:
    case INT8_AMX:
    case INT4_VNNI:
    case INT8_SPANS_VNNI:
    case INT6_VNNI:
    case K_QUANTS_VNNI:
    case K_MINIMA_VNNI:
    case OFFSETS6_VNNI:
    case OFFSETS8_VNNI: return 64;
    default: return 16;
  }
}

int64_t integer_row_bytes(const struct integer_product *p) { return kind_of(p->level)->row_bytes(p); }

int64_t integer_block_bytes(const struct integer_product *p) { return kind_of(p->level)->block_bytes(p); }

void integer_multiply_block(const struct integer_product *p, int64_t block) { kind_of(p->level)->multiply_block(p, block); }

void integer_multiply_parts(const struct integer_product *p, int64_t *next) {
  const int64_t width = integer_width(p->level), blocks = (p->outputs + width - 1) / width;
  /* Rows are divided, too, where there are few blocks for many threads. */
  const int64_t most = p->rows / MIN_ROWS_OF_PART, wanted = (4 * p->threads + blocks - 1) / blocks;
  const int64_t splits = p->threads == 1 || most < 1 ? 1 : wanted < most ? wanted : most;
  const int64_t row_bytes = integer_row_bytes(p), out_bytes = p->outputs * (p->is_bfloat ? 2 : 4);
  struct integer_product part = *p;
  for (;;) {
    const int64_t unit = __atomic_fetch_add(next, 1, __ATOMIC_RELAXED), split = unit % splits;
    if (unit >= blocks * splits) return;
    const int64_t begin = p->rows * split / splits;
    part.rows = p->rows * (split + 1) / splits - begin;
    part.integers = p->integers + begin * row_bytes;
    part.row_scales = p->row_scales + begin;
    part.out = (char *)p->out + begin * out_bytes;
    integer_multiply_block(&part, unit / splits);
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

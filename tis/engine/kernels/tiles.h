/* Tiles of AMX: up to 32 rows times weights of 32 outputs, in bfloat16. A tile has 16 rows of 64 bytes: of x, 16 rows
   with 32 inputs; of weights as product.h wants them, 16 pairs of inputs with 16 outputs; of sums, 16 rows with 16 outputs.

   Needs permission of the system (`may_use_tiles`). The tests compile this file with tiles in plain C. */
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define TILES __attribute__((target("amx-tile,amx-bf16")))
enum { TILE_INPUTS = 32, TILE_STEPS = 16, TILE_OUTPUTS = 16, TILED_ROWS = 32, TILED_WIDTH = 32 };

/* Rows that the tiles of this thread are laid out for, or 0. */
static __thread int64_t rows_laid_out;

/* Tiles 0 to 3 are sums, 4 and 5 rows of x, 6 and 7 weights. 0, 1 and 4 have the first 16 rows, 2, 3 and 5 the others. */
TILES static void lay_out_tiles(int64_t rows) {
  struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  } layout __attribute__((aligned(64)));
  if (rows_laid_out == rows) return;
  memset(&layout, 0, sizeof layout);
  layout.palette = 1;
  const int64_t first = rows > 16 ? 16 : rows, second = rows > 16 ? rows - 16 : 0;
  for (int tile = 0; tile < 8; tile++) {
    layout.rows[tile] = tile >= 6 ? 16 : tile == 2 || tile == 3 || tile == 5 ? second : first;
    layout.row_bytes[tile] = layout.rows[tile] ? 64 : 0; /* a tile has both, or is not used */
  }
  /* Some compilers know of the first bytes only that the instruction reads. */
  __asm__ volatile("" ::"r"(&layout) : "memory");
  _tile_loadconfig(&layout);
  rows_laid_out = rows;
}

/* To be called before other code runs in this thread. */
TILES static void leave_tiles(void) {
  if (!rows_laid_out) return;
  _tile_release();
  rows_laid_out = 0;
}

/* sums[rows][32] (+)= x[rows][32 * count] * weights. */
struct tiled_product {
  const uint16_t *x;
  int64_t x_stride; /* in elements, as the others */
  const float *weights; /* pairs of inputs */
  int64_t weights_stride; /* from one pair to the next */
  float *sums;
  int64_t sums_stride, count, rows;
  int goes_on;
};

#define BEGIN_SUMS(tile, sums)           \
  if (p.goes_on)                         \
    _tile_loadd(tile, sums, sums_bytes); \
  else                                   \
    _tile_zero(tile);

/* `ahead` is fetched into the far cache, so many lines with each step; where there is something to fetch, these rows are
   the first to use the weights, which then come from there, too. */
TILES static inline void multiply_tiles(const struct tiled_product p, const char *ahead, int lines) {
  const int64_t x_bytes = 2 * p.x_stride, weights_bytes = 4 * p.weights_stride, sums_bytes = 4 * p.sums_stride;
  const int has_second = p.rows > 16;
  const uint16_t *second_x = p.x + 16 * p.x_stride;
  float *second_sums = p.sums + 16 * p.sums_stride;
  lay_out_tiles(p.rows);
  __asm__ volatile("" ::: "memory"); /* what is loaded below has been stored */
  BEGIN_SUMS(0, p.sums)
  BEGIN_SUMS(1, p.sums + TILE_OUTPUTS)
  if (has_second) {
    BEGIN_SUMS(2, second_sums)
    BEGIN_SUMS(3, second_sums + TILE_OUTPUTS)
  }
  for (int64_t number = 0; number < p.count; number++) {
    const float *weights = p.weights + number * TILE_STEPS * p.weights_stride;
    if (lines) {
      const char *next = (const char *)(weights + 2 * TILE_STEPS * p.weights_stride);
      for (int64_t line = 0; line < TILE_STEPS * weights_bytes / 64; line++) _mm_prefetch(next + 64 * line, _MM_HINT_T0);
      for (int line = 0; line < TILE_STEPS * lines; line++) _mm_prefetch(ahead + 64 * line, _MM_HINT_T1);
      ahead += 64 * TILE_STEPS * lines;
    }
    _tile_loadd(4, p.x + number * TILE_INPUTS, x_bytes);
    _tile_loadd(6, weights, weights_bytes);
    _tile_loadd(7, weights + TILE_OUTPUTS, weights_bytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if (has_second) {
      _tile_loadd(5, second_x + number * TILE_INPUTS, x_bytes);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, p.sums, sums_bytes);
  _tile_stored(1, p.sums + TILE_OUTPUTS, sums_bytes);
  if (has_second) {
    _tile_stored(2, second_sums, sums_bytes);
    _tile_stored(3, second_sums + TILE_OUTPUTS, sums_bytes);
  }
  __asm__ volatile("" ::: "memory"); /* what is stored is read below */
}
#undef BEGIN_SUMS

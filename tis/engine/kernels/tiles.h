/* Tiles of AMX: up to 32 rows times weights of 32 or 64 outputs; in bfloat16, or bytes of rows without a sign times bytes of
   weights with one. A tile has 16 rows of 64 bytes: of x, 16 rows with 32 (64) inputs; of weights as product.h
   (int8_product.c) wants them, 16 pairs (fours) of inputs with 16 outputs; of sums, 16 rows with 16 outputs.

   Needs permission of the system (`may_use_tiles`). The tests compile this file with tiles in plain C. */
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define TILES __attribute__((target("amx-tile,amx-bf16,amx-int8")))
enum { TILE_INPUTS = 32, TILE_STEPS = 16, TILE_OUTPUTS = 16, TILED_ROWS = 32, TILED_WIDTH = 32, TILE_BYTES = 64 };

/* Rows that the tiles of this thread are laid out for, or 0. */
static __thread int64_t rows_laid_out;

/* Tiles 0 to 3 are sums, 4 and 5 rows of x, 6 and 7 weights. 0, 1 and 4 have the first 16 rows, 2, 3 and 5 the others.
   Where there are no others, 2 and 3 are sums of further outputs, and 5 is weights. */
TILES static void lay_out_tiles(int64_t rows) {
  struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  } layout __attribute__((aligned(64)));
  if (rows_laid_out == rows) return;
  memset(&layout, 0, sizeof layout);
  layout.palette = 1;
  const int64_t first = rows > 16 ? 16 : rows, second = rows > 16 ? rows - 16 : rows;
  for (int tile = 0; tile < 8; tile++) {
    layout.rows[tile] = tile >= 6 || (tile == 5 && rows <= 16) ? 16 : tile == 2 || tile == 3 || tile == 5 ? second : first;
    layout.row_bytes[tile] = TILE_BYTES;
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

/* sums[rows][outputs] (+)= x[rows][64 bytes * steps] * weights. */
struct tiled_product {
  const void *x, *weights;
  void *sums;
  int64_t x_stride, weights_stride, sums_stride; /* in bytes; of weights from one pair, or four, of inputs to the next */
  int64_t steps, rows, outputs;
  int goes_on;
  /* What is likely to be used next, of which so many lines are fetched into the far cache with each step, or NULL; and
     whether these rows are the first to use the weights, which then come from there, too. */
  const char *ahead;
  int lines, is_first;
};

#define BEGIN_SUMS(tile, sums)             \
  do {                                     \
    if (p->goes_on)                        \
      _tile_loadd(tile, sums, sums_bytes); \
    else                                   \
      _tile_zero(tile);                    \
  } while (0)
#define ADD_PRODUCT(sums, x, weights)       \
  do {                                      \
    if (has_bytes)                          \
      _tile_dpbusd(sums, x, weights);       \
    else                                    \
      _tile_dpbf16ps(sums, x, weights);     \
  } while (0)

TILES static inline __attribute__((always_inline)) void fetch_for_step(const struct tiled_product *p, const char *weights,
                                                                       int64_t step, int64_t line_bytes) {
  if (p->is_first) {
    const char *later = weights + 2 * TILE_STEPS * p->weights_stride;
    for (int64_t input = 0; input < TILE_STEPS; input++)
      for (int64_t at = 0; at < line_bytes; at += 64) _mm_prefetch(later + input * p->weights_stride + at, _MM_HINT_T0);
  }
  if (p->ahead)
    for (int64_t line = 0; line < p->lines; line++) _mm_prefetch(p->ahead + 64 * (p->lines * step + line), _MM_HINT_T1);
}

/* 32 outputs from `first` on. Each tile that is loaded is used twice, so a step of four loads has four products. */
TILES static inline __attribute__((always_inline)) void multiply_two_by_two(const struct tiled_product *p, int64_t first,
                                                                            const int has_bytes) {
  const int64_t x_bytes = p->x_stride, weights_bytes = p->weights_stride, sums_bytes = p->sums_stride;
  const char *x = p->x, *second_x = x + 16 * x_bytes, *weights = (const char *)p->weights + 4 * first;
  char *sums = (char *)p->sums + 4 * first, *second_sums = sums + 16 * sums_bytes;
  BEGIN_SUMS(0, sums);
  BEGIN_SUMS(1, sums + TILE_BYTES);
  BEGIN_SUMS(2, second_sums);
  BEGIN_SUMS(3, second_sums + TILE_BYTES);
  for (int64_t step = 0; step < p->steps; step++, weights += TILE_STEPS * weights_bytes) {
    fetch_for_step(p, weights, first ? step + p->steps : step, 2 * TILE_BYTES);
    _tile_loadd(4, x + step * TILE_BYTES, x_bytes);
    _tile_loadd(6, weights, weights_bytes);
    ADD_PRODUCT(0, 4, 6);
    _tile_loadd(7, weights + TILE_BYTES, weights_bytes);
    ADD_PRODUCT(1, 4, 7);
    _tile_loadd(5, second_x + step * TILE_BYTES, x_bytes);
    ADD_PRODUCT(2, 5, 6);
    ADD_PRODUCT(3, 5, 7);
  }
  _tile_stored(0, sums, sums_bytes);
  _tile_stored(1, sums + TILE_BYTES, sums_bytes);
  _tile_stored(2, second_sums, sums_bytes);
  _tile_stored(3, second_sums + TILE_BYTES, sums_bytes);
}

/* At most 16 rows, with all outputs at once: few rows wait for the weights, which are read as they lie. */
TILES static inline __attribute__((always_inline)) void multiply_one_by_four(const struct tiled_product *p, const int has_bytes) {
  const int64_t x_bytes = p->x_stride, weights_bytes = p->weights_stride, sums_bytes = p->sums_stride;
  const char *x = p->x, *weights = p->weights;
  char *sums = p->sums;
  const int has_four = p->outputs > TILED_WIDTH;
  BEGIN_SUMS(0, sums);
  BEGIN_SUMS(1, sums + TILE_BYTES);
  if (has_four) {
    BEGIN_SUMS(2, sums + 2 * TILE_BYTES);
    BEGIN_SUMS(3, sums + 3 * TILE_BYTES);
  }
  for (int64_t step = 0; step < p->steps; step++, weights += TILE_STEPS * weights_bytes) {
    fetch_for_step(p, weights, step, 4 * p->outputs);
    _tile_loadd(4, x + step * TILE_BYTES, x_bytes);
    _tile_loadd(6, weights, weights_bytes);
    ADD_PRODUCT(0, 4, 6);
    _tile_loadd(7, weights + TILE_BYTES, weights_bytes);
    ADD_PRODUCT(1, 4, 7);
    if (has_four) {
      _tile_loadd(5, weights + 2 * TILE_BYTES, weights_bytes);
      ADD_PRODUCT(2, 4, 5);
      _tile_loadd(6, weights + 3 * TILE_BYTES, weights_bytes);
      ADD_PRODUCT(3, 4, 6);
    }
  }
  _tile_stored(0, sums, sums_bytes);
  _tile_stored(1, sums + TILE_BYTES, sums_bytes);
  if (has_four) {
    _tile_stored(2, sums + 2 * TILE_BYTES, sums_bytes);
    _tile_stored(3, sums + 3 * TILE_BYTES, sums_bytes);
  }
}

TILES static inline __attribute__((always_inline)) void multiply_tiles(const struct tiled_product *p, const int has_bytes) {
  lay_out_tiles(p->rows);
  __asm__ volatile("" ::: "memory"); /* what is loaded below has been stored */
  if (p->rows <= 16)
    multiply_one_by_four(p, has_bytes);
  else
    for (int64_t first = 0; first < p->outputs; first += TILED_WIDTH) multiply_two_by_two(p, first, has_bytes);
  __asm__ volatile("" ::: "memory"); /* what is stored is read below */
}
TILES __attribute__((unused)) static void multiply_bfloat_tiles(const struct tiled_product *p) { multiply_tiles(p, 0); }
TILES __attribute__((unused)) static void multiply_byte_tiles(const struct tiled_product *p) { multiply_tiles(p, 1); }
#undef BEGIN_SUMS
#undef ADD_PRODUCT

/* Groups of rows are as equal as they can be, since tiles are laid out again for another number of them. */
static inline int64_t rows_of_groups(int64_t rows) {
  const int64_t groups = (rows + TILED_ROWS - 1) / TILED_ROWS;
  return (rows + groups - 1) / groups;
}

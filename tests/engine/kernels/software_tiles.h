/* The instructions of AMX in plain C, as Intel's manual describes them: for machines without it. To be included before
   the code that uses them. */
#ifndef SOFTWARE_TILES_H
#define SOFTWARE_TILES_H
#define SOFTWARE_TILES /* also for 8-bit weights, whose level is asked of the CPU */
#include <immintrin.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define UNUSED __attribute__((unused))

struct tile {
  int rows, row_bytes;
  uint8_t data[16][64];
};
UNUSED static __thread struct tile tiles[8];
UNUSED static __thread int is_laid_out;

UNUSED static struct tile *laid_out(int number) {
  if (!is_laid_out || !tiles[number].rows) abort(); /* the CPU raises #UD */
  return tiles + number;
}

UNUSED static void software_loadconfig(const uint8_t *layout) {
  for (int i = 0; i < 14; i++)
    if (layout[0] != 1 || layout[2 + i]) abort(); /* #GP */
  for (int number = 0; number < 8; number++) {
    uint16_t row_bytes;
    memcpy(&row_bytes, layout + 16 + 2 * number, 2);
    if (layout[48 + number] > 16 || row_bytes > 64 || !layout[48 + number] != !row_bytes) abort(); /* #GP */
    memset(tiles + number, 0, sizeof *tiles);
    tiles[number].rows = layout[48 + number], tiles[number].row_bytes = row_bytes;
  }
  is_laid_out = 1;
}

UNUSED static void software_load(int number, const void *base, int64_t stride) {
  struct tile *tile = laid_out(number);
  memset(tile->data, 0, sizeof tile->data);
  for (int row = 0; row < tile->rows; row++) memcpy(tile->data[row], (const char *)base + row * stride, tile->row_bytes);
}

UNUSED static void software_store(int number, void *base, int64_t stride) {
  const struct tile *tile = laid_out(number);
  for (int row = 0; row < tile->rows; row++) memcpy((char *)base + row * stride, tile->data[row], tile->row_bytes);
}

UNUSED static float bfloat_at(const uint8_t *at) {
  uint16_t high;
  memcpy(&high, at, 2);
  const uint32_t bits = (uint32_t)high << 16;
  float number;
  memcpy(&number, &bits, 4);
  return number;
}

UNUSED static void require_fit(const struct tile *s, const struct tile *a, const struct tile *b) {
  if (s->rows != a->rows || s->row_bytes != b->row_bytes || a->row_bytes / 4 != b->rows) abort(); /* #UD */
}

/* The products of even inputs are added up, those of odd ones, and then both. */
UNUSED static void software_dot(int sums, int left, int right) {
  struct tile *s = laid_out(sums), *a = laid_out(left), *b = laid_out(right);
  require_fit(s, a, b);
  for (int row = 0; row < s->rows; row++)
    for (int column = 0; column < s->row_bytes / 4; column++) {
      float parts[2] = {0, 0}, sum;
      for (int pair = 0; pair < b->rows; pair++)
        for (int i = 0; i < 2; i++)
          parts[i] += bfloat_at(a->data[row] + 4 * pair + 2 * i) * bfloat_at(b->data[pair] + 4 * column + 2 * i);
      memcpy(&sum, s->data[row] + 4 * column, 4);
      sum += parts[0] + parts[1];
      memcpy(s->data[row] + 4 * column, &sum, 4);
    }
}

/* Bytes without a sign times bytes with one, in sums of 32 bits that wrap around. */
UNUSED static void software_dot_bytes(int sums, int left, int right) {
  struct tile *s = laid_out(sums), *a = laid_out(left), *b = laid_out(right);
  require_fit(s, a, b);
  for (int row = 0; row < s->rows; row++)
    for (int column = 0; column < s->row_bytes / 4; column++) {
      uint32_t sum;
      memcpy(&sum, s->data[row] + 4 * column, 4);
      for (int four = 0; four < b->rows; four++)
        for (int i = 0; i < 4; i++)
          sum += (uint32_t)(a->data[row][4 * four + i] * (int8_t)b->data[four][4 * column + i]);
      memcpy(s->data[row] + 4 * column, &sum, 4);
    }
}

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#undef _tile_dpbusd
#define _tile_loadconfig(layout) software_loadconfig((const uint8_t *)(layout))
#define _tile_release() (is_laid_out = 0)
#define _tile_zero(number) memset(laid_out(number)->data, 0, sizeof tiles[0].data)
#define _tile_loadd software_load
#define _tile_stored software_store
#define _tile_dpbf16ps software_dot
#define _tile_dpbusd software_dot_bytes

#endif

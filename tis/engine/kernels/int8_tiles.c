/* 8-bit weights by tiles of AMX: bytes of rows without a sign times bytes of weights with one, as the vectors of
   int8_product.c multiply them, and with the same sums. 16 groups of inputs of a block are four tiles of 16 outputs as they
   lie: few rows, which vectors multiply, read the same weights. */
#include "integer_product.h"
#include "kernels.h"

#ifdef HAS_TILES
#include "tiles.h"

/* Planes of rows that use a part of a block in turn, and steps of 64 inputs in a part: its weights are 16 KiB, which stay in
   the near cache beside 8 KiB of 32 planes and as much of their sums. */
enum { OUTPUTS = 64, MAX_PLANES = 256, PART_STEPS = 4, STEP_LINES = 64 };

void int8_multiply_by_tiles(const struct integer_product *p, int64_t block) {
  const int64_t planes = p->bits == 16 ? 2 * p->rows : p->rows, plane_bytes = int8_plane_bytes(p);
  const int64_t steps = int8_groups(p) / TILE_STEPS, step_bytes = OUTPUTS * TILE_BYTES;
  const char *weights = (const char *)p->weights + block * steps * step_bytes;
  /* The block that this thread is likely to take next. */
  const int64_t following = block + p->threads;
  const char *of_following = following * OUTPUTS < p->outputs ? weights + p->threads * steps * step_bytes : NULL;
  _Alignas(64) int32_t sums[MAX_PLANES][OUTPUTS];
  for (int64_t first = 0; first < planes; first += MAX_PLANES) {
    const int64_t count = planes - first < MAX_PLANES ? planes - first : MAX_PLANES;
    const int64_t each = rows_of_groups(count), groups = (count + each - 1) / each;
    /* With more than 16 planes in a group, a part is read twice, for half of the outputs each. */
    const int64_t visits = groups * (each > 16 ? 2 : 1), lines = (STEP_LINES + visits - 1) / visits;
    const int64_t parts = visits == 1 ? 1 : (steps + PART_STEPS - 1) / PART_STEPS;
    for (int64_t part = 0; part < parts; part++) {
      const int64_t from = steps * part / parts, to = steps * (part + 1) / parts;
      const char *ahead = part + 1 < parts ? weights + to * step_bytes : of_following;
      for (int64_t group = 0; group < groups; group++) {
        const int64_t plane = each * group, fetched = lines * (to - from) * (visits / groups) * group;
        const struct tiled_product product = {
            .x = p->integers + (first + plane) * plane_bytes + from * TILE_BYTES,
            .weights = weights + from * step_bytes,
            .sums = sums[plane],
            .x_stride = plane_bytes,
            .weights_stride = step_bytes / TILE_STEPS,
            .sums_stride = sizeof sums[0],
            .steps = to - from,
            .rows = count - plane < each ? count - plane : each,
            .outputs = OUTPUTS,
            .goes_on = part > 0,
            .ahead = first == 0 && ahead ? ahead + 64 * fetched : NULL,
            .lines = (int)lines,
            .is_first = group == 0,
        };
        multiply_byte_tiles(&product);
      }
    }
    int8_finish(p, block * OUTPUTS, first, (int)count, (const int32_t(*)[OUTPUTS])sums);
  }
  leave_tiles();
}
#else
void int8_multiply_by_tiles(const struct integer_product *p, int64_t block) { (void)p, (void)block; }
#endif

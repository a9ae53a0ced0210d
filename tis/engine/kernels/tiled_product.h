/* Rows times weights in bfloat16 by tiles of AMX, with what comes behind the product: `multiply_block` of product.h.

   All rows use a part of the weights of a block before the next part. What a part reads again and again is to stay in
   the near cache: its weights, 12 KiB, beside 12 KiB of 32 rows and 4 KiB of their sums, which pass through it. */
/* Rows that use a part in turn: their sums stay in the far cache. Steps of a tile, 32 inputs, in a part. */
enum { MAX_TILED_ROWS = 256, PART_STEPS = 6 };

/* Some rows with one block of weights. `following` is the block that is likely to be next, or NULL. */
FN void P(multiply_block)(const struct product *p, int64_t block, int64_t begin, int64_t end, const void *following) {
  const int64_t steps = p->inputs / P(STEP_INPUTS), tile_steps = steps / TILE_STEPS, done = tile_steps * TILE_STEPS;
  const WEIGHT *weights = (const WEIGHT *)p->weights + block * steps * P(STEP);
  float sums[MAX_TILED_ROWS * P(WIDTH)] __attribute__((aligned(64)));
  for (int64_t first = begin; first < end; first += MAX_TILED_ROWS) {
    const int64_t rows = end - first < MAX_TILED_ROWS ? end - first : MAX_TILED_ROWS;
    const int64_t each = rows_of_groups(rows), groups = (rows + each - 1) / each;
    const int64_t parts = groups == 1 ? tile_steps > 0 : (tile_steps + PART_STEPS - 1) / PART_STEPS;
    /* Each group fetches its share of what comes behind the part. */
    const int64_t lines = (TILE_STEPS * P(STEP_LINES) + groups - 1) / groups;
    const E *x = (const E *)p->x + first * p->x_stride;
    for (int64_t part = 0; part < parts; part++) {
      const int64_t from = tile_steps * part / parts, to = tile_steps * (part + 1) / parts;
      const WEIGHT *of_part = weights + from * TILE_STEPS * P(STEP);
      const char *ahead = part + 1 < parts ? (const char *)(weights + to * TILE_STEPS * P(STEP)) : following;
      for (int64_t group = 0; group < groups; group++) {
        const int64_t row = each * group;
        const struct tiled_product product = {
            .x = x + row * p->x_stride + from * TILE_INPUTS,
            .weights = of_part,
            .sums = sums + row * P(WIDTH),
            .x_stride = p->x_stride * sizeof(E),
            .weights_stride = P(STEP) * sizeof(WEIGHT),
            .sums_stride = P(WIDTH) * sizeof(float),
            .steps = to - from,
            .rows = rows - row < each ? rows - row : each,
            .outputs = P(WIDTH),
            .goes_on = part > 0,
            .ahead = first == begin && ahead ? ahead + 64 * lines * (to - from) * group : NULL,
            .lines = (int)lines,
            .is_first = group == 0,
        };
        multiply_bfloat_tiles(&product);
      }
    }
    for (int64_t row = 0; row < rows && done < steps; row += 6)
      P(multiply_six)(x + row * p->x_stride + done * P(STEP_INPUTS), p->x_stride, weights + done * P(STEP), steps - done,
                      sums + row * P(WIDTH), parts > 0, NULL, 0, rows - row);
    for (int64_t row = 0; row < rows; row++) P(finish_row)(p, block, first + row, sums + row * P(WIDTH));
  }
  leave_tiles();
}

/* The product of int4_product.c in terms of a vector: the includer says what one is, and how it is multiplied. */
enum { NAME(WIDTH) = VECTORS * LANES };

TARGET static void NAME(round_row)(const struct integer_product *p, int64_t row) { round_row(p, row); }

/* totals[rows][WIDTH] += x[rows] * the weights of so many groups of a block. The sums have names, as GCC keeps an array of
   them in memory. */
IN(TARGET) void NAME(multiply)(const uint8_t *weights, const int8_t *x, const struct group_sum *x_sums, int64_t row_bytes,
                               int64_t groups, const int rows, const enum head head, int fetches, int32_t *totals) {
#define SUMS(r) NAME(sums) s##r##0, s##r##1, s##r##2, s##r##3;
#define OF_ROW(r) ((const struct group_sum *)((const char *)x_sums + r * row_bytes))
#define DOT(r, i, is_first) \
  if (r < rows && i < VECTORS) s##r##i = is_first ? NAME(first)(w##i, four, OF_ROW(r)) : NAME(dot)(s##r##i, w##i, four);
#define DOTS(r, step, is_first)                            \
  {                                                        \
    const int8_t *four = x + r * row_bytes + 4 * (step);   \
    DOT(r, 0, is_first) DOT(r, 1, is_first) DOT(r, 2, is_first) DOT(r, 3, is_first) \
  }
#define ADD(r, i) \
  if (r < rows) NAME(add)(totals + r * NAME(WIDTH) + i * LANES, s##r##i, of, OF_ROW(r));
#define ALL_ROWS(DO, ...) DO(0, __VA_ARGS__) DO(1, __VA_ARGS__) DO(2, __VA_ARGS__) DO(3, __VA_ARGS__)
#define OF_A_VECTOR(i)                                                                               \
  if (i < VECTORS) {                                                                                 \
    const NAME(scales) of = head == SCALES_AND_OFFSETS                                               \
                                ? NAME(scales_at)(weights + i * LANES, weights + NAME(WIDTH) + i * LANES) \
                                : NAME(zeros_at)(weights + i * LANES);                               \
    ALL_ROWS(ADD, i)                                                                                 \
  }
#define TWO_STEPS(two)                                                                                  \
  {                                                                                                     \
    const uint8_t *numbers = weights + before + (two) * 4 * NAME(WIDTH);                                \
    const NAME(bytes) b0 = NAME(load)(numbers), b1 = NAME(load)(numbers + 4 * LANES);                   \
    NAME(bytes) b2 = b0, b3 = b0;                                                                       \
    if (VECTORS == 4) b2 = NAME(load)(numbers + 8 * LANES), b3 = NAME(load)(numbers + 12 * LANES);      \
    NAME(bytes) w0 = NAME(low)(b0), w1 = NAME(low)(b1), w2 = NAME(low)(b2), w3 = NAME(low)(b3);         \
    ALL_ROWS(DOTS, 2 * two, two == 0)                                                                   \
    w0 = NAME(high)(b0), w1 = NAME(high)(b1), w2 = NAME(high)(b2), w3 = NAME(high)(b3);                 \
    ALL_ROWS(DOTS, 2 * two + 1, 0)                                                                      \
  }
  const int before = (head == SCALES_AND_OFFSETS ? 2 : 1) * NAME(WIDTH), bytes = before + INT4_GROUP / 2 * NAME(WIDTH);
  for (int64_t group = 0; group < groups; group++) {
    if (fetches)
      for (int line = 0; line < (bytes + 63) / 64; line++) __builtin_prefetch(weights + FETCHED_BYTES + 64 * line, 0, 3);
    SUMS(0) SUMS(1) SUMS(2) SUMS(3)
    TWO_STEPS(0) TWO_STEPS(1) TWO_STEPS(2) TWO_STEPS(3)
    OF_A_VECTOR(0) OF_A_VECTOR(1) OF_A_VECTOR(2) OF_A_VECTOR(3)
    weights += bytes, x += INT4_GROUP, x_sums++;
  }
#undef SUMS
#undef OF_ROW
#undef DOT
#undef DOTS
#undef ADD
#undef ALL_ROWS
#undef OF_A_VECTOR
#undef TWO_STEPS
}

/* to[row] += scales[row] * totals[row], with one rounding. */
IN(TARGET) void NAME(fold)(float *to, const int32_t *totals, const float *scales, int64_t row_bytes, const int rows) {
  for (int r = 0; r < rows; r++) {
    const float scale = *(const float *)((const char *)scales + r * row_bytes);
    for (int i = 0; i < NAME(WIDTH); i++)
      to[r * NAME(WIDTH) + i] = fmaf((float)totals[r * NAME(WIDTH) + i], scale, to[r * NAME(WIDTH) + i]);
  }
}

IN(TARGET) void NAME(multiply_row)(const struct integer_product *p, int64_t block, const int8_t *x, const int rows,
                                   const enum head head, int fetches, float *to) {
  const int64_t groups = int4_groups(p), row_bytes = int4_row_bytes(p), each = head == ZEROS ? p->group / INT4_GROUP : groups;
  const uint8_t *weights = (const uint8_t *)p->weights + block * int4_block_bytes(p);
  const struct group_sum *x_sums = (const struct group_sum *)(x + groups * INT4_GROUP);
  const float *x_scales = (const float *)(x_sums + groups);
  const float *by = p->scales + block * ((groups + each - 1) / each) * NAME(WIDTH);
  float of_a_scale[ROWS * NAME(WIDTH)] __attribute__((aligned(64))); /* what the inputs of a scale of a file add */
  for (int64_t group = 0, end; group < groups; group = end) {
    const int64_t of_file = group / each, of_row = group / GROUPS_OF_A_SCALE;
    end = (of_row + 1) * GROUPS_OF_A_SCALE < groups ? (of_row + 1) * GROUPS_OF_A_SCALE : groups;
    if ((of_file + 1) * each < end) end = (of_file + 1) * each;
    int32_t totals[ROWS * NAME(WIDTH)] __attribute__((aligned(64)));
    memset(totals, 0, rows * NAME(WIDTH) * sizeof *totals);
    NAME(multiply)(weights, x + group * INT4_GROUP, x_sums + group, row_bytes, end - group, rows, head, fetches, totals);
    weights += (end - group) * (head == SCALES_AND_OFFSETS ? 2 + INT4_GROUP / 2 : 1 + INT4_GROUP / 2) * NAME(WIDTH);
    if (head == SCALES_AND_OFFSETS) {
      NAME(fold)(to, totals, x_scales + of_row, row_bytes, rows);
      continue;
    }
    if (group == of_file * each) memset(of_a_scale, 0, rows * NAME(WIDTH) * sizeof(float));
    NAME(fold)(of_a_scale, totals, x_scales + of_row, row_bytes, rows);
    if (end < groups && end < (of_file + 1) * each) continue;
    for (int r = 0; r < rows; r++)
      for (int i = 0; i < NAME(WIDTH); i++)
        to[r * NAME(WIDTH) + i] = fmaf(of_a_scale[r * NAME(WIDTH) + i], by[of_file * NAME(WIDTH) + i], to[r * NAME(WIDTH) + i]);
  }
}

TARGET static void NAME(block)(const struct integer_product *p, int64_t block) {
  for (int64_t row = 0; row < p->rows; row += ROWS) {
    const int8_t *x = (const int8_t *)p->integers + row * int4_row_bytes(p);
    const int64_t rows = p->rows - row < ROWS ? p->rows - row : ROWS;
    float totals[ROWS * NAME(WIDTH)] __attribute__((aligned(64))) = {0};
#define MULTIPLY(n)                                                      \
  if (p->group)                                                          \
    NAME(multiply_row)(p, block, x, n, ZEROS, !row, totals);                   \
  else                                                                   \
    NAME(multiply_row)(p, block, x, n, SCALES_AND_OFFSETS, !row, totals);
    switch (rows) {
      case 1: MULTIPLY(1) break;
      case 2: MULTIPLY(2) break;
      case 3: MULTIPLY(3) break;
      default: MULTIPLY(4)
    }
#undef MULTIPLY
    for (int64_t r = 0; r < rows; r++) finish_row(p, block, row + r, totals + r * NAME(WIDTH), NAME(WIDTH));
  }
}

#undef NAME
#undef TARGET
#undef LANES
#undef VECTORS

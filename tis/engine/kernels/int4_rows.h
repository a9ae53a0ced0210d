/* The product of int4_product.c in terms of a vector: the includer says what one is, and how it is multiplied. */
enum { NAME(WIDTH) = VECTORS * LANES };

TARGET static void NAME(round_row)(const struct integer_product *p, int64_t row) { round_row(p, row); }

/* totals[rows][WIDTH] += x[rows] * the weights of so many groups of a block. `scales` are those of x. `head` is what stands
   before the numbers of a group; with SCALED_ZEROS each group has a scale of 32 bits in `by`. The sums have names, as GCC
   keeps an array of them in memory. */
IN(TARGET) void NAME(multiply)(const uint8_t *weights, const int8_t *x, const int8_t *scales, int64_t row_bytes, int64_t groups,
                               const int rows, const enum head head, const float *by, float *totals) {
#define SUMS(r) NAME(sums) s##r##0, s##r##1, s##r##2, s##r##3;
#define DOT(r, i, is_first) \
  if (r < rows && i < VECTORS) s##r##i = is_first ? NAME(first)(w##i, four) : NAME(dot)(s##r##i, w##i, four);
#define DOTS(r, step, is_first)                            \
  {                                                        \
    const int8_t *four = x + r * row_bytes + 4 * (step);   \
    DOT(r, 0, is_first) DOT(r, 1, is_first) DOT(r, 2, is_first) DOT(r, 3, is_first) \
  }
#define ADD(r, i) \
  if (r < rows) {                                                                                                       \
    if (head == SCALED_ZEROS)                                                                                           \
      NAME(add_scaled)(totals + r * NAME(WIDTH) + i * LANES, s##r##i, of, (const void *)(scales + r * row_bytes), by + i * LANES); \
    else                                                                                                                \
      NAME(add)(totals + r * NAME(WIDTH) + i * LANES, s##r##i, of, (const void *)(scales + r * row_bytes));             \
  }
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
    for (int line = 0; line < (bytes + 63) / 64; line++)
      __builtin_prefetch(weights + FETCHED_BYTES + 64 * line, 0, 3);
    SUMS(0) SUMS(1) SUMS(2) SUMS(3)
    TWO_STEPS(0) TWO_STEPS(1) TWO_STEPS(2) TWO_STEPS(3)
    OF_A_VECTOR(0) OF_A_VECTOR(1) OF_A_VECTOR(2) OF_A_VECTOR(3)
    weights += bytes, x += INT4_GROUP, scales += sizeof(struct group_scale);
    if (head == SCALED_ZEROS) by += NAME(WIDTH);
  }
#undef SUMS
#undef DOT
#undef DOTS
#undef ADD
#undef ALL_ROWS
#undef OF_A_VECTOR
#undef TWO_STEPS
}

/* Zeros. GCC would make an instruction of it that takes a hundred cycles to begin (`rep stos`). */
IN(TARGET) void NAME(clear)(float *totals, const int rows) {
  for (int at = 0; at < rows * NAME(WIDTH) * 4; at += 64) {
    memset((char *)totals + at, 0, 64);
    __asm__ volatile("" ::: "memory");
  }
}

/* The same for groups with scales of 32 bits. */
IN(TARGET) void NAME(multiply_groups)(const struct integer_product *p, int64_t block, const uint8_t *weights, const int8_t *x,
                                      const int rows, float *totals) {
  const int64_t groups = int4_groups(p), row_bytes = int4_row_bytes(p), each = p->group / INT4_GROUP;
  const float *of_group = p->scales + block * ((groups + each - 1) / each) * NAME(WIDTH);
  const int8_t *scales = x + groups * INT4_GROUP;
  if (each == 1) {
    NAME(multiply)(weights, x, scales, row_bytes, groups, rows, SCALED_ZEROS, of_group, totals);
    return;
  }
  for (int64_t group = 0; group < groups; group += each, of_group += NAME(WIDTH)) {
    float sums[ROWS * NAME(WIDTH)] __attribute__((aligned(64)));
    NAME(clear)(sums, rows);
    const int64_t count = groups - group < each ? groups - group : each;
    NAME(multiply)(weights, x + group * INT4_GROUP, scales + group * (int64_t)sizeof(struct group_scale), row_bytes, count,
                   rows, ZEROS, NULL, sums);
    for (int r = 0; r < rows; r++)
      for (int i = 0; i < NAME(WIDTH); i++)
        totals[r * NAME(WIDTH) + i] = fmaf(sums[r * NAME(WIDTH) + i], of_group[i], totals[r * NAME(WIDTH) + i]);
    weights += count * (1 + INT4_GROUP / 2) * NAME(WIDTH);
  }
}

TARGET static void NAME(block)(const struct integer_product *p, int64_t block) {
  const int64_t groups = int4_groups(p), row_bytes = int4_row_bytes(p);
  const uint8_t *weights = (const uint8_t *)p->weights + block * int4_block_bytes(p);
  for (int64_t row = 0; row < p->rows; row += ROWS) {
    const int8_t *x = (const int8_t *)p->integers + row * row_bytes;
    const int64_t rows = p->rows - row < ROWS ? p->rows - row : ROWS;
    float totals[ROWS * NAME(WIDTH)] __attribute__((aligned(64)));
    NAME(clear)(totals, ROWS);
    const int8_t *scales = x + groups * INT4_GROUP;
#define MULTIPLY(n)                                                                 \
  if (p->group)                                                                     \
    NAME(multiply_groups)(p, block, weights, x, n, totals);                         \
  else                                                                              \
    NAME(multiply)(weights, x, scales, row_bytes, groups, n, SCALES_AND_OFFSETS, NULL, totals);
    switch (rows) {
      case 1: MULTIPLY(1) break;
      case 2: MULTIPLY(2) break;
      case 3: MULTIPLY(3) break;
      default: MULTIPLY(4)
    }
#undef MULTIPLY
    for (int64_t r = 0; r < rows; r++) integer_finish_row(p, block, row + r, totals + r * NAME(WIDTH), NAME(WIDTH));
  }
}

#undef NAME
#undef TARGET
#undef LANES
#undef VECTORS

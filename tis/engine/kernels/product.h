/* Rows times weights of one element type, and what comes right behind the product.

   Weights lie as [block of outputs][step][output of the block][input of the step]: a step has one input, or two where
   the CPU adds products of pairs. A row is added up in the order of its inputs, so its result is the same beside any
   other rows. */

#if defined(DOT_BFLOAT) && IS_BFLOAT
#define MULTIPLY_ADD(sum, a, b) v_dot(sum, a, b)
#define WEIGHTS(p) v_load_float((const float *)(p))
enum { NAME(STEP_INPUTS) = 2 };
#else
#define MULTIPLY_ADD(sum, a, b) v_fma(a, b, sum)
#define WEIGHTS(p) LOAD(p)
enum { NAME(STEP_INPUTS) = 1 };
#endif
/* A tile has as many sums as there are registers for them: six rows with a block of outputs. */
enum { NAME(VECTORS) = W == 8 ? 2 : 4, NAME(WIDTH) = NAME(VECTORS) * W };
enum { NAME(VECTOR) = W * NAME(STEP_INPUTS), NAME(STEP) = NAME(VECTORS) * NAME(VECTOR) }; /* in elements */
enum { NAME(STEP_LINES) = (NAME(STEP) * sizeof(E) + 63) / 64 };

/* The input of a step in all lanes, or the pair. */
IN vec NAME(input_at)(const E *x) {
#if defined(DOT_BFLOAT) && IS_BFLOAT
  float pair;
  memcpy(&pair, x, 4);
  return v_set(pair);
#elif IS_BFLOAT
  const uint32_t bits = (uint32_t)*x << 16;
  float number;
  memcpy(&number, &bits, 4);
  return v_set(number);
#else
  return v_set(*x);
#endif
}

/* sums[rows][WIDTH] (+)= x[rows][steps] * weights[steps]. Sums have names, as GCC keeps an array of them in memory.
   Weights are fetched from the far cache some steps before, and `ahead` into it, so many lines with each step. */
IN void NAME(multiply_tile)(const E *x, int64_t stride, const E *weights, int64_t steps, float *sums, int goes_on,
                            const char *ahead, int lines, const int rows) {
#define BEGIN(r, i) \
  vec s##r##i = r < rows && i < NAME(VECTORS) && goes_on ? v_load_float(sums + r * NAME(WIDTH) + i * W) : v_zero();
#define ADD(r)                                                                \
  if (r < rows) {                                                             \
    const vec all = NAME(input_at)(x + r * stride);                           \
    s##r##0 = MULTIPLY_ADD(s##r##0, all, w0);                                 \
    s##r##1 = MULTIPLY_ADD(s##r##1, all, w1);                                 \
    if (NAME(VECTORS) == 4) {                                                 \
      s##r##2 = MULTIPLY_ADD(s##r##2, all, w2);                               \
      s##r##3 = MULTIPLY_ADD(s##r##3, all, w3);                               \
    }                                                                         \
  }
#define END(r, i) \
  if (r < rows && i < NAME(VECTORS)) v_store_float(sums + r * NAME(WIDTH) + i * W, s##r##i);
#define OF_A_ROW(DO, r) DO(r, 0) DO(r, 1) DO(r, 2) DO(r, 3)
  OF_A_ROW(BEGIN, 0) OF_A_ROW(BEGIN, 1) OF_A_ROW(BEGIN, 2) OF_A_ROW(BEGIN, 3) OF_A_ROW(BEGIN, 4) OF_A_ROW(BEGIN, 5)
  for (int64_t step = 0; step < steps; step++) {
    const vec w0 = WEIGHTS(weights), w1 = WEIGHTS(weights + NAME(VECTOR));
    vec w2 = w0, w3 = w0;
    if (NAME(VECTORS) == 4) w2 = WEIGHTS(weights + 2 * NAME(VECTOR)), w3 = WEIGHTS(weights + 3 * NAME(VECTOR));
    for (int line = 0; line < NAME(STEP_LINES); line++)
      __builtin_prefetch((const char *)weights + FETCHED_BYTES + 64 * line, 0, 3);
    if (lines > 0) {
      __builtin_prefetch(ahead, 0, 2);
      if (lines > 1) __builtin_prefetch(ahead + 64, 0, 2);
      if (lines > 2) __builtin_prefetch(ahead + 128, 0, 2), __builtin_prefetch(ahead + 192, 0, 2);
      ahead += 64 * lines;
    }
    ADD(0) ADD(1) ADD(2) ADD(3) ADD(4) ADD(5)
    weights += NAME(STEP);
    x += NAME(STEP_INPUTS);
  }
  OF_A_ROW(END, 0) OF_A_ROW(END, 1) OF_A_ROW(END, 2) OF_A_ROW(END, 3) OF_A_ROW(END, 4) OF_A_ROW(END, 5)
#undef BEGIN
#undef ADD
#undef END
#undef OF_A_ROW
}

FN void NAME(multiply_rows)(const E *x, int64_t stride, const E *weights, int64_t steps, float *sums, int goes_on,
                            const char *ahead, int lines, int64_t rows) {
  switch (rows) {
#define CASE(n) \
  case n: NAME(multiply_tile)(x, stride, weights, steps, sums, goes_on, ahead, lines, n); break;
    CASE(1) CASE(2) CASE(3) CASE(4) CASE(5)
    default: NAME(multiply_tile)(x, stride, weights, steps, sums, goes_on, ahead, lines, 6);
#undef CASE
  }
}

IN void NAME(put)(E *out, vec x, int64_t count) {
  if (count >= W)
    STORE(out, x);
  else if (count > 0)
    NAME(store_some)(out, x, count);
}

/* One row of a block: bias, and then what the product says comes behind it. */
FN void NAME(finish_row)(const struct product *p, int64_t block, int64_t row, float *sums) {
  if (p->bias)
    for (int i = 0; i < NAME(VECTORS); i++)
      v_store_float(sums + i * W, v_add(v_load_float(sums + i * W), v_load_float(p->bias + block * NAME(WIDTH) + i * W)));
  const int64_t columns = p->behind == SILU_MUL ? NAME(WIDTH) / 2 : NAME(WIDTH), first = block * columns;
  E *out = (E *)p->out + row * p->out_stride + first;
  for (int64_t j = 0; j < columns && first + j < p->columns; j += W) {
    const int64_t left = p->columns - first - j;
    vec sum = v_load_float(sums + j);
    if (p->behind == SILU_MUL) {
      sum = NAME(rounded)(v_silu(NAME(rounded)(sum)));
      sum = v_mul(sum, NAME(rounded)(v_load_float(sums + columns + j)));
    } else if (p->behind == ADD_RESIDUAL) {
      const E *residual = (const E *)p->residual + row * p->residual_stride + first + j;
      sum = v_add(NAME(rounded)(sum), left >= W ? LOAD(residual) : NAME(load_some)(residual, left));
    }
    NAME(put)(out + j, sum, left);
  }
}

/* Some rows with one block of weights. `following` is the block that is likely to be next, or NULL. */
FN void NAME(multiply_block)(const struct product *p, int64_t block, int64_t begin, int64_t end, const void *following) {
  const int64_t steps = p->inputs / NAME(STEP_INPUTS);
  const E *weights = (const E *)p->weights + block * steps * NAME(STEP);
  float sums[MAX_GROUP_ROWS * NAME(WIDTH)] __attribute__((aligned(64)));
  for (int64_t first = begin; first < end; first += MAX_GROUP_ROWS) {
    const int64_t rows = end - first < MAX_GROUP_ROWS ? end - first : MAX_GROUP_ROWS, tiles = (rows + 5) / 6;
    /* The weights of a part are read again by each tile, so they should stay in the cache. */
    const int64_t most = MAX_PART_BYTES / (int64_t)(NAME(STEP) * sizeof(E));
    const int64_t part = tiles == 1 || steps < most ? steps : most;
    for (int64_t done = 0; done < steps; done += part) {
      const int64_t now = steps - done < part ? steps - done : part;
      const int64_t lines = first == begin ? (NAME(STEP_LINES) + tiles - 1) / tiles : 0;
      const char *ahead = done + now < steps ? (const char *)(weights + (done + now) * NAME(STEP)) : following;
      for (int64_t tile = 0; tile < tiles; tile++) {
        const int64_t row = first + 6 * tile, left = ahead && tile * lines < NAME(STEP_LINES) ? lines : 0;
        NAME(multiply_rows)((const E *)p->x + row * p->x_stride + done * NAME(STEP_INPUTS), p->x_stride,
                            weights + done * NAME(STEP), now, sums + 6 * tile * NAME(WIDTH), done > 0,
                            ahead + 64 * tile * lines * now, (int)left, first + rows - row);
      }
    }
    for (int64_t row = 0; row < rows; row++) NAME(finish_row)(p, block, first + row, sums + row * NAME(WIDTH));
  }
}

#undef MULTIPLY_ADD
#undef WEIGHTS

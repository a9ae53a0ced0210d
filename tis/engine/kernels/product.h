/* Rows times weights, and what comes right behind the product. Weights have the type of the rows, or are bfloat16 that
   becomes float32 in the registers, exactly.

   They lie as [block of outputs][step][output of the block][input of the step]: a step has one input, or two where
   the CPU adds products of pairs or the weights are narrower than the rows. A row is added up in the order of its
   inputs, so its result is the same beside any other rows. */

/* SECOND: of the second inputs of a step, where they are added by themselves. */
#if defined(DOT_BFLOAT) && IS_BFLOAT
#define MULTIPLY_ADD(sum, a, b) v_dot(sum, a, b)
#define WEIGHTS(p) v_load_float((const float *)(p))
#define SECOND_WEIGHTS(p) v_zero()
enum { P(STEP_INPUTS) = 2, P(SUMS_OF_A_STEP) = 1 };
#elif HAS_BFLOAT_WEIGHTS && !IS_BFLOAT
#define MULTIPLY_ADD(sum, a, b) v_fma(a, b, sum)
#define WEIGHTS(p) v_load_low(p)
#define SECOND_WEIGHTS(p) v_load_high(p)
enum { P(STEP_INPUTS) = 2, P(SUMS_OF_A_STEP) = 2 };
#else
#define MULTIPLY_ADD(sum, a, b) v_fma(a, b, sum)
#define WEIGHTS(p) LOAD(p)
#define SECOND_WEIGHTS(p) v_zero()
enum { P(STEP_INPUTS) = 1, P(SUMS_OF_A_STEP) = 1 };
#endif
/* As many sums as there are registers, or tiles, for them: of some rows with a block of outputs. */
#if defined(TILED) && IS_BFLOAT
enum { P(ROWS) = TILED_ROWS, P(VECTORS) = TILED_WIDTH / W };
#else
enum { P(ROWS) = 6, P(VECTORS) = W == 8 ? 2 : 4 };
#endif
enum { P(WIDTH) = P(VECTORS) * W, P(VECTOR) = W * P(STEP_INPUTS), P(STEP) = P(VECTORS) * P(VECTOR) }; /* STEP, VECTOR: elements */
enum { P(STEP_LINES) = (P(STEP) * sizeof(WEIGHT) + 63) / 64 };

/* The input of a step in all lanes, or the pair. */
IN vec P(input_at)(const E *x) {
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
IN void P(multiply_some)(const E *x, int64_t stride, const WEIGHT *weights, int64_t steps, float *sums, int goes_on,
                            const char *ahead, int lines, const int rows) {
#define BEGIN(r, i) \
  vec s##r##i = r < rows && i < P(VECTORS) && goes_on ? v_load_float(sums + r * P(WIDTH) + i * W) : v_zero();
#define ADD(r, input)                                                         \
  if (r < rows) {                                                             \
    const vec all = P(input_at)(x + r * stride + input);                      \
    s##r##0 = MULTIPLY_ADD(s##r##0, all, w0);                                 \
    s##r##1 = MULTIPLY_ADD(s##r##1, all, w1);                                 \
    if (P(VECTORS) == 4) {                                                    \
      s##r##2 = MULTIPLY_ADD(s##r##2, all, w2);                               \
      s##r##3 = MULTIPLY_ADD(s##r##3, all, w3);                               \
    }                                                                         \
  }
#define END(r, i) \
  if (r < rows && i < P(VECTORS)) v_store_float(sums + r * P(WIDTH) + i * W, s##r##i);
#define OF_A_ROW(DO, r) DO(r, 0) DO(r, 1) DO(r, 2) DO(r, 3)
  OF_A_ROW(BEGIN, 0) OF_A_ROW(BEGIN, 1) OF_A_ROW(BEGIN, 2) OF_A_ROW(BEGIN, 3) OF_A_ROW(BEGIN, 4) OF_A_ROW(BEGIN, 5)
  for (int64_t step = 0; step < steps; step++) {
    vec w0 = WEIGHTS(weights), w1 = WEIGHTS(weights + P(VECTOR)), w2 = w0, w3 = w0;
    if (P(VECTORS) == 4) w2 = WEIGHTS(weights + 2 * P(VECTOR)), w3 = WEIGHTS(weights + 3 * P(VECTOR));
    for (int line = 0; line < P(STEP_LINES); line++)
      __builtin_prefetch((const char *)weights + FETCHED_BYTES + 64 * line, 0, 3);
    if (lines > 0) {
      __builtin_prefetch(ahead, 0, 2);
      if (lines > 1) __builtin_prefetch(ahead + 64, 0, 2);
      if (lines > 2) __builtin_prefetch(ahead + 128, 0, 2), __builtin_prefetch(ahead + 192, 0, 2);
      ahead += 64 * lines;
    }
    ADD(0, 0) ADD(1, 0) ADD(2, 0) ADD(3, 0) ADD(4, 0) ADD(5, 0)
    if (P(SUMS_OF_A_STEP) == 2) {
      __asm__ volatile("" ::: "memory"); /* else they are loaded above, and no register is left for them */
      w0 = SECOND_WEIGHTS(weights), w1 = SECOND_WEIGHTS(weights + P(VECTOR));
      if (P(VECTORS) == 4) w2 = SECOND_WEIGHTS(weights + 2 * P(VECTOR)), w3 = SECOND_WEIGHTS(weights + 3 * P(VECTOR));
      ADD(0, 1) ADD(1, 1) ADD(2, 1) ADD(3, 1) ADD(4, 1) ADD(5, 1)
    }
    weights += P(STEP);
    x += P(STEP_INPUTS);
  }
  OF_A_ROW(END, 0) OF_A_ROW(END, 1) OF_A_ROW(END, 2) OF_A_ROW(END, 3) OF_A_ROW(END, 4) OF_A_ROW(END, 5)
#undef BEGIN
#undef ADD
#undef END
#undef OF_A_ROW
}

FN void P(multiply_six)(const E *x, int64_t stride, const WEIGHT *weights, int64_t steps, float *sums, int goes_on,
                        const char *ahead, int lines, int64_t rows) {
  switch (rows) {
#define CASE(n) \
  case n: P(multiply_some)(x, stride, weights, steps, sums, goes_on, ahead, lines, n); break;
    CASE(1) CASE(2) CASE(3) CASE(4) CASE(5)
    default: P(multiply_some)(x, stride, weights, steps, sums, goes_on, ahead, lines, 6);
#undef CASE
  }
}

IN void P(put)(E *out, vec x, int64_t count) {
  if (count >= W)
    STORE(out, x);
  else if (count > 0)
    NAME(store_some)(out, x, count);
}

/* One row of a block: bias, and then what the product says comes behind it. */
FN void P(finish_row)(const struct product *p, int64_t block, int64_t row, float *sums) {
  if (p->bias)
    for (int i = 0; i < P(VECTORS); i++)
      v_store_float(sums + i * W, v_add(v_load_float(sums + i * W), v_load_float(p->bias + block * P(WIDTH) + i * W)));
  const int64_t columns = p->behind == SILU_MUL ? P(WIDTH) / 2 : P(WIDTH), first = block * columns;
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
    } else if (p->behind == GELU) {
      sum = v_gelu(NAME(rounded)(sum));
    }
    P(put)(out + j, sum, left);
  }
}

#if defined(TILED) && IS_BFLOAT
#include "tiled_product.h"
#else
/* These bytes of a block are read by all rows before the next, so that they stay in the far cache. */
enum { P(PART_BYTES) = 1 << 16 };

/* Some rows with one block of weights. `following` is the block that is likely to be next, or NULL. */
FN void P(multiply_block)(const struct product *p, int64_t block, int64_t begin, int64_t end, const void *following) {
  const int64_t steps = p->inputs / P(STEP_INPUTS);
  const WEIGHT *weights = (const WEIGHT *)p->weights + block * steps * P(STEP);
  float sums[MAX_GROUP_ROWS * P(WIDTH)] __attribute__((aligned(64)));
  for (int64_t first = begin; first < end; first += MAX_GROUP_ROWS) {
    const int64_t rows = end - first < MAX_GROUP_ROWS ? end - first : MAX_GROUP_ROWS, groups = (rows + P(ROWS) - 1) / P(ROWS);
    const int64_t most = P(PART_BYTES) / (int64_t)(P(STEP) * sizeof(WEIGHT));
    const int64_t part = groups == 1 || steps < most ? steps : most;
    for (int64_t done = 0; done < steps; done += part) {
      const int64_t now = steps - done < part ? steps - done : part;
      const int64_t lines = first == begin ? (P(STEP_LINES) + groups - 1) / groups : 0;
      const char *ahead = done + now < steps ? (const char *)(weights + (done + now) * P(STEP)) : following;
      for (int64_t group = 0; group < groups; group++) {
        const int64_t row = first + P(ROWS) * group, left = ahead && group * lines < P(STEP_LINES) ? lines : 0;
        P(multiply_six)((const E *)p->x + row * p->x_stride + done * P(STEP_INPUTS), p->x_stride,
                        weights + done * P(STEP), now, sums + P(ROWS) * group * P(WIDTH), done > 0,
                        ahead + 64 * group * lines * now, (int)left, first + rows - row);
      }
    }
    for (int64_t row = 0; row < rows; row++) P(finish_row)(p, block, first + row, sums + row * P(WIDTH));
  }
}
#endif

#undef MULTIPLY_ADD
#undef WEIGHTS
#undef SECOND_WEIGHTS

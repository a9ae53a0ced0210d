/* Mixtures of experts: rows are grouped by the experts that they chose, so that each expert's weights are read once.

   The router stays with the model; it says which experts a row has, and with which shares their results are added. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "integer_product.h"
#include "parts.h"

enum { UP = 1, DOWN = 2 };

struct experts {
  struct call call;
  int64_t has_integers; /* the weights */
  int64_t stages;     /* UP, DOWN or both; only with `has_silu` nothing has to be done between them */
  int64_t has_silu;
  struct weights gate_up, down; /* of all experts, one behind the other */
  const void *x;                /* [tokens, hidden] */
  int64_t x_stride;
  const int64_t *chosen; /* [tokens, each]; `num_experts` is none */
  const float *shares;   /* [tokens, each] */
  int64_t tokens, each, num_experts, hidden, inner, up_width;
  void *rows;  /* [tokens * each, hidden]: by expert, then the results */
  void *up;    /* [tokens * each, up_width]: of the first product, where something has to be done behind it */
  void *inner_rows; /* [tokens * each, inner] */
  uint8_t *integers;
  float *row_scales;
  void *out; /* [tokens, hidden] */
};

struct group { /* the rows of an expert */
  int64_t expert, begin, rows;
};

struct groups {
  struct group *groups; /* to be freed; all else lies behind it */
  int64_t count, rows;
  int64_t *places; /* [tokens, each]: in the rows by expert, or -1 */
  int64_t *tokens; /* of the rows by expert */
};

static int64_t group_rows(const struct experts *a, struct groups *g) {
  const int64_t pairs = a->tokens * a->each;
  for (int64_t pair = 0; pair < pairs; pair++)
    if (a->chosen[pair] < 0 || a->chosen[pair] > a->num_experts) return OUT_OF_RANGE;
  *g = (struct groups){calloc(1, a->num_experts * sizeof(struct group) + 2 * pairs * sizeof(int64_t)), 0, 0, NULL, NULL};
  if (!g->groups) return NO_MEMORY;
  g->places = (int64_t *)(g->groups + a->num_experts), g->tokens = g->places + pairs;
  struct group *of = g->groups;
  for (int64_t pair = 0; pair < pairs; pair++)
    if (a->chosen[pair] < a->num_experts) of[a->chosen[pair]].rows++, g->rows++;
  int64_t begin = 0;
  for (int64_t expert = 0; expert < a->num_experts; expert++) {
    of[expert].begin = begin, begin += of[expert].rows;
    of[expert].rows = 0;
  }
  for (int64_t pair = 0; pair < pairs; pair++) {
    const int64_t expert = a->chosen[pair];
    g->places[pair] = expert < a->num_experts ? of[expert].begin + of[expert].rows++ : -1;
    if (g->places[pair] >= 0) g->tokens[g->places[pair]] = pair / a->each;
  }
  for (int64_t expert = 0; expert < a->num_experts; expert++) /* those without rows are left out */
    if (of[expert].rows) of[g->count++] = (struct group){expert, of[expert].begin, of[expert].rows};
  return OK;
}

struct share { /* of one thread */
  int64_t begin, end;
};

static struct share share_of(int64_t rows) {
  const int64_t me = omp_get_thread_num(), all = omp_get_num_threads();
  return (struct share){rows * me / all, rows * (me + 1) / all};
}

static int64_t item_size(const struct experts *a) { return a->call.type == BFLOAT16 ? 2 : 4; }

/* One product of all experts. Threads take blocks of weights in turn; each meets all rows of its expert at once. */
static void multiply(const struct experts *a, const struct groups *g, const struct weights *weights, const void *x,
                     int64_t inputs, void *out, int64_t columns, int64_t behind, int64_t *next) {
  const struct multiplication *by = &operations_of(a->call)->by[weights->type];
  const int64_t block_columns = by->width / (behind == SILU_MUL ? 2 : 1), item = item_size(a);
  const int64_t blocks = (columns + block_columns - 1) / block_columns;
  const int64_t block_bytes = inputs * by->width * (weights->type == BFLOAT16 ? 2 : 4);
  struct product product = {a->call, x,    inputs, weights->blocks, weights->type, NULL,    out,
                            columns, NULL, 0,      0,               inputs,        columns, behind};
  for (;;) {
    const int64_t unit = __atomic_fetch_add(next, 1, __ATOMIC_RELAXED), following = unit + a->call.threads;
    if (unit >= g->count * blocks) return;
    const struct group *group = g->groups + unit / blocks;
    const char *of_all = weights->blocks, *ahead = NULL;
    if (following < g->count * blocks)
      ahead = of_all + (g->groups[following / blocks].expert * blocks + following % blocks) * block_bytes;
    product.x = (const char *)x + group->begin * inputs * item;
    product.out = (char *)out + group->begin * columns * item;
    product.weights = of_all + group->expert * blocks * block_bytes;
    product.bias = weights->bias ? weights->bias + group->expert * blocks * by->width : NULL;
    product.rows = group->rows;
    by->multiply_block(&product, unit % blocks, 0, group->rows, ahead);
  }
}

static struct integer_product rounded_product_of(const struct experts *a, const struct groups *g, const void *x, int64_t inputs,
                                           const struct weights *weights, void *out, int64_t outputs) {
  return (struct integer_product){.x = x,
                               .weights = weights->blocks,
                               .scales = weights->scales,
                               .sums = weights->sums,
                               .bias = weights->bias,
                               .out = out,
                               .integers = a->integers,
                               .row_scales = a->row_scales,
                               .rows = g->rows,
                               .row_stride = inputs,
                               .inputs = inputs,
                               .outputs = outputs,
                               .is_bfloat = a->call.type == BFLOAT16,
                               .bits = a->tokens >= MIN_ROWS_FOR_8_BITS ? 8 : 16,
                               .threads = a->call.threads,
                               .level = weights->type,
                               .group = weights->group,
                               .order = weights->order};
}

/* The rows of one thread. Each expert may have its inputs in an order of its own. */
static void round_rows(const struct groups *g, const struct integer_product *all, struct share mine) {
  struct integer_product product = *all;
  for (int64_t number = 0; number < g->count; number++) {
    const struct group *group = g->groups + number;
    const int64_t begin = group->begin > mine.begin ? group->begin : mine.begin, end = group->begin + group->rows;
    if (all->order) product.order = all->order + group->expert * all->inputs;
    for (int64_t row = begin; row < end && row < mine.end; row++) integer_round_row(&product, row);
  }
}

/* The same with weights of 8 or 4 bits, of rows that are rounded. */
static void multiply_rounded(const struct experts *a, const struct groups *g, const struct integer_product *all, int64_t *next) {
  const int64_t width = integer_width(all->level), blocks = (all->outputs + width - 1) / width, padded = blocks * width;
  const int64_t row_bytes = integer_row_bytes(all), block_bytes = integer_block_bytes(all);
  const int64_t scales = all->group ? (all->inputs + all->group - 1) / all->group * padded : padded;
  struct integer_product product = *all;
  for (;;) {
    const int64_t unit = __atomic_fetch_add(next, 1, __ATOMIC_RELAXED);
    if (unit >= g->count * blocks) return;
    const struct group *group = g->groups + unit / blocks;
    product.weights = (const char *)all->weights + group->expert * blocks * block_bytes;
    product.scales = all->scales + group->expert * scales;
    product.sums = all->sums ? all->sums + group->expert * padded : NULL;
    product.bias = all->bias ? all->bias + group->expert * padded : NULL;
    product.integers = all->integers + group->begin * row_bytes;
    product.row_scales = all->row_scales + group->begin;
    product.out = (char *)all->out + group->begin * all->outputs * item_size(a);
    product.rows = group->rows;
    integer_multiply_block(&product, unit % blocks);
  }
}

#define WAIT_FOR_ALL _Pragma("omp barrier")

/* Ends with a barrier. */
static void compute_up(const struct experts *a, const struct groups *g, int64_t *next) {
  const struct share mine = share_of(g->rows);
  const int64_t item = item_size(a), bytes = a->hidden * item;
  for (int64_t row = mine.begin; row < mine.end; row++)
    memcpy((char *)a->rows + row * bytes, (const char *)a->x + g->tokens[row] * a->x_stride * item, bytes);
  if (a->has_integers) {
    const struct integer_product product = rounded_product_of(a, g, a->rows, a->hidden, &a->gate_up, a->up, a->up_width);
    round_rows(g, &product, mine);
    WAIT_FOR_ALL
    multiply_rounded(a, g, &product, next);
    WAIT_FOR_ALL
    if (!a->has_silu) return;
    const char *factor = (const char *)a->up + a->inner * item;
    const struct silu_mul silu_mul = {a->call, {a->up, 1, a->up_width, 0}, {factor, 1, a->up_width, 0}, a->inner_rows, g->rows, a->inner};
    operations_of(a->call)->silu_mul(&silu_mul, mine.begin, mine.end);
  } else {
    WAIT_FOR_ALL
    if (a->has_silu)
      multiply(a, g, &a->gate_up, a->rows, a->hidden, a->inner_rows, a->inner, SILU_MUL, next);
    else
      multiply(a, g, &a->gate_up, a->rows, a->hidden, a->up, a->up_width, NOTHING, next);
  }
  WAIT_FOR_ALL
}

static void compute_down(const struct experts *a, const struct groups *g, int64_t *next) {
  if (a->has_integers) {
    const struct share mine = share_of(g->rows);
    const struct integer_product product = rounded_product_of(a, g, a->inner_rows, a->inner, &a->down, a->rows, a->hidden);
    round_rows(g, &product, mine);
    WAIT_FOR_ALL
    multiply_rounded(a, g, &product, next);
  } else {
    multiply(a, g, &a->down, a->inner_rows, a->inner, a->rows, a->hidden, NOTHING, next);
  }
  WAIT_FOR_ALL
  const struct mix mix = {a->rows, g->places, a->shares, a->out, a->each, a->hidden};
  const struct share mine = share_of(a->tokens);
  operations_of(a->call)->mix(&mix, mine.begin, mine.end);
}

API int64_t tis_experts(const struct experts *a) {
  struct groups g;
  const int64_t code = group_rows(a, &g);
  if (code) return code;
  int64_t next[2] = {0, 0};
#pragma omp parallel num_threads((int)a->call.threads) if (a->call.threads > 1)
  {
    if (a->stages & UP) compute_up(a, &g, next);
    if (a->stages & DOWN) compute_down(a, &g, next + 1);
  }
  free(g.groups);
  return OK;
}

/* Whole decoder layers: norm, attention and MLP of all tokens of a step, layer after layer, by one team of threads.

   Between two operations the threads wait for each other; within one, each takes the next part that nobody has begun. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "integer_product.h"
#include "parts.h"

struct layer {
  struct weights qkv, output, gate_up, down;
  const void *input_norm, *query_norm, *key_norm, *inner_norm; /* norms of heads: or NULL */
  void *keys, *values;                                         /* [key_heads, slots, size] */
  float *key_scales, *value_scales;                            /* [key_heads, slots] of a cache of 8 bits, or NULL */
  int64_t window;
  float input_eps, query_eps, key_eps, inner_eps, scale, softcap;
};

/* All layers have the same shape. Without `inner` there is one, which ends with its inner norm: that is the begin of the
   scratch, and what comes behind it is not computed here. */
struct layers {
  struct call call;
  int64_t has_integers; /* the weights */
  const struct layer *layers;
  int64_t count, hidden, inner, heads, key_heads, size, rotary_size;
  void *x;       /* [tokens, hidden]: in and out */
  void *scratch; /* see buffers_of */
  /* Rows that are read behind the last layer, or -1: all. Of the others it computes keys and values only. */
  int64_t num_wanted;
  const int64_t *wanted;
  void *wanted_x, *wanted_scratch;
  uint8_t *integers;
  float *row_scales;
  const void *cos, *sin; /* [tokens, rotary_size] */
  int64_t cos_stride, sin_stride;
  const int64_t *slots; /* of each token in the cache */
  const int64_t *runs;  /* [num_runs, 4], as those of attention */
  int64_t tokens, num_runs, num_slots;
  int64_t key_head_stride, key_slot_stride, value_head_stride, value_slot_stride, scale_head_stride;
};

/* What threads take in turn, in one layer. */
enum { QKV, ATTENTION, OUTPUT, GATE_UP, DOWN, SHARED };
struct buffers {
  void *normed, *qkv, *attended, *inner;
  void *sum; /* of a product with weights of 8 or 4 bits */
};

struct share { /* the tokens of one thread, where they are divided */
  int64_t begin, end;
};

static struct share share_of(int64_t tokens) {
  const int64_t me = omp_get_thread_num(), all = omp_get_num_threads();
  return (struct share){tokens * me / all, tokens * (me + 1) / all};
}

static int64_t qkv_width(const struct layers *a) { return (a->heads + 2 * a->key_heads) * a->size; }

static int64_t item_size(const struct layers *a) { return a->call.type == BFLOAT16 ? 2 : 4; }

/* The scratch has as many numbers for each token as these are wide; `sum` is as wide as two of `inner`. */
static struct buffers buffers_of(const struct layers *a) {
  char *at = a->scratch;
  const int64_t row = a->tokens * item_size(a);
  struct buffers b;
  b.normed = at, at += row * a->hidden;
  b.qkv = at, at += row * qkv_width(a);
  b.attended = at, at += row * a->heads * a->size;
  b.inner = at, at += row * a->inner;
  b.sum = at;
  return b;
}

static void norm(const struct layers *a, const void *weight, float eps, void *out, struct share mine) {
  const struct rms_norm norm = {a->call, {a->x, 1, a->hidden, 0}, weight, out, a->tokens, a->hidden, eps};
  operations_of(a->call)->rms_norm(&norm, mine.begin, mine.end);
}

static struct product product_of(const struct layers *a, const void *x, int64_t inputs, const struct weights *weights,
                                 void *out, int64_t columns) {
  const struct product product = {a->call, x,      inputs, weights->blocks, weights->type, weights->bias, out,
                                  columns, NULL,   0,      a->tokens,       inputs,        columns,       NOTHING};
  return product;
}

static struct integer_product rounded_product_of(const struct layers *a, const void *x, int64_t inputs,
                                           const struct weights *weights, void *out, int64_t outputs) {
  const int64_t bits = a->tokens >= MIN_ROWS_FOR_8_BITS ? 8 : 16;
  const struct integer_product product = {x,       weights->blocks, weights->scales, weights->sums,     weights->bias,
                                          out,     a->integers,     a->row_scales,   a->tokens,         inputs,
                                          inputs,  outputs,         a->call.type == BFLOAT16, bits,     a->call.threads,
                                          weights->type, weights->group, weights->order};
  return product;
}

static void round_rows(const struct integer_product *p, struct share mine) {
  for (int64_t row = mine.begin; row < mine.end; row++) integer_round_row(p, row);
}

/* x += sum */
static void add_sum(const struct layers *a, const void *sum, struct share mine) {
  operations_of(a->call)->add(a->x, sum, mine.begin * a->hidden, mine.end * a->hidden);
}

/* Norms and rotary embedding of queries and keys; then keys and values go to the cache. */
static void place_heads(const struct layers *a, const struct layer *layer, void *qkv, struct share mine) {
  const struct operations *operations = operations_of(a->call);
  const int64_t item = item_size(a), width = qkv_width(a), size = a->size;
  char *query = qkv, *key = query + a->heads * size * item, *value = key + a->key_heads * size * item;
  for (int64_t token = mine.begin; token < mine.end && layer->query_norm; token++) {
    char *q = query + token * width * item, *k = key + token * width * item;
    const struct rms_norm queries = {a->call, {q, 1, size, 0}, layer->query_norm, q, a->heads, size, layer->query_eps};
    const struct rms_norm keys = {a->call, {k, 1, size, 0}, layer->key_norm, k, a->key_heads, size, layer->key_eps};
    operations->rms_norm(&queries, 0, a->heads);
    operations->rms_norm(&keys, 0, a->key_heads);
  }
  /* Keys lie behind queries, so that both are turned as heads of one row. */
  const struct rotary rotary = {a->call, qkv,   a->heads + a->key_heads, a->tokens,     a->rotary_size, size,
                                width,   a->cos, a->sin,                 a->cos_stride, a->sin_stride};
  operations->rotary(&rotary, mine.begin, mine.end);
  for (int64_t token = mine.begin; token < mine.end; token++)
    for (int64_t head = 0; head < a->key_heads; head++) {
      const int64_t from = (token * width + head * size) * item, slot = a->slots[token];
      const int64_t key_at = head * a->key_head_stride + slot * a->key_slot_stride;
      const int64_t value_at = head * a->value_head_stride + slot * a->value_slot_stride;
      if (layer->key_scales) {
        const int64_t scale_at = head * a->scale_head_stride + slot;
        operations->round_row((int8_t *)layer->keys + key_at, layer->key_scales + scale_at, key + from, size);
        operations->round_row((int8_t *)layer->values + value_at, layer->value_scales + scale_at, value + from, size);
      } else {
        memcpy((char *)layer->keys + key_at * item, key + from, size * item);
        memcpy((char *)layer->values + value_at * item, value + from, size * item);
      }
    }
}

static struct attention attention_of(const struct layers *a, const struct layer *layer, struct buffers b) {
  const struct attention attention = {.call = a->call,
                                      .query = b.qkv,
                                      .keys = layer->keys,
                                      .values = layer->values,
                                      .out = b.attended,
                                      .runs = a->runs,
                                      .key_scales = layer->key_scales,
                                      .value_scales = layer->value_scales,
                                      .num_runs = a->num_runs,
                                      .tokens = a->tokens,
                                      .heads = a->heads,
                                      .key_heads = a->key_heads,
                                      .slots = a->num_slots,
                                      .size = a->size,
                                      .value_size = a->size,
                                      .query_head_stride = a->size,
                                      .query_token_stride = qkv_width(a),
                                      .key_head_stride = a->key_head_stride,
                                      .key_slot_stride = a->key_slot_stride,
                                      .value_head_stride = a->value_head_stride,
                                      .value_slot_stride = a->value_slot_stride,
                                      .scale_head_stride = a->scale_head_stride,
                                      .window = layer->window,
                                      .scale = layer->scale,
                                      .softcap = layer->softcap};
  return attention;
}

#define WAIT_FOR_ALL _Pragma("omp barrier")

static void attend(const struct layers *a, const struct layer *layer, const struct attention_parts *parts, float *scratch,
                   int64_t *next, struct share mine) {
  const struct buffers b = buffers_of(a);
  place_heads(a, layer, b.qkv, mine);
  WAIT_FOR_ALL
  const struct attention attention = attention_of(a, layer, b);
  attend_parts(&attention, parts, scratch, next + ATTENTION);
  WAIT_FOR_ALL
}

static void compute_queries(const struct layers *a, const struct layer *layer, int64_t *next, struct share mine) {
  const struct buffers b = buffers_of(a);
  norm(a, layer->input_norm, layer->input_eps, b.normed, mine);
  WAIT_FOR_ALL
  struct product product = product_of(a, b.normed, a->hidden, &layer->qkv, b.qkv, qkv_width(a));
  multiply_parts(&product, next + QKV);
  WAIT_FOR_ALL
}

/* What comes behind the attention. */
static void compute_rest(const struct layers *a, const struct layer *layer, int64_t *next, struct share mine) {
  const struct buffers b = buffers_of(a);
  struct product product = product_of(a, b.attended, a->heads * a->size, &layer->output, a->x, a->hidden);
  product.behind = ADD_RESIDUAL, product.residual = a->x, product.residual_stride = a->hidden;
  multiply_parts(&product, next + OUTPUT);
  WAIT_FOR_ALL
  norm(a, layer->inner_norm, layer->inner_eps, b.normed, mine);
  WAIT_FOR_ALL
  if (!a->inner) return;
  product = product_of(a, b.normed, a->hidden, &layer->gate_up, b.inner, a->inner);
  product.behind = SILU_MUL;
  multiply_parts(&product, next + GATE_UP);
  WAIT_FOR_ALL
  product = product_of(a, b.inner, a->inner, &layer->down, a->x, a->hidden);
  product.behind = ADD_RESIDUAL, product.residual = a->x, product.residual_stride = a->hidden;
  multiply_parts(&product, next + DOWN);
  WAIT_FOR_ALL
}

/* The same with weights of 8 or 4 bits: rows are rounded before a product, and nothing comes right behind it. */
static void compute_rounded_queries(const struct layers *a, const struct layer *layer, int64_t *next, struct share mine) {
  const struct buffers b = buffers_of(a);
  norm(a, layer->input_norm, layer->input_eps, b.normed, mine);
  struct integer_product product = rounded_product_of(a, b.normed, a->hidden, &layer->qkv, b.qkv, qkv_width(a));
  round_rows(&product, mine);
  WAIT_FOR_ALL
  integer_multiply_parts(&product, next + QKV);
  WAIT_FOR_ALL
}

static void compute_rounded_rest(const struct layers *a, const struct layer *layer, int64_t *next, struct share mine) {
  const struct buffers b = buffers_of(a);
  struct integer_product product = rounded_product_of(a, b.attended, a->heads * a->size, &layer->output, b.sum, a->hidden);
  round_rows(&product, mine);
  WAIT_FOR_ALL
  integer_multiply_parts(&product, next + OUTPUT);
  WAIT_FOR_ALL
  add_sum(a, b.sum, mine);
  norm(a, layer->inner_norm, layer->inner_eps, b.normed, mine);
  if (!a->inner) return;
  product = rounded_product_of(a, b.normed, a->hidden, &layer->gate_up, b.sum, 2 * a->inner);
  round_rows(&product, mine);
  WAIT_FOR_ALL
  integer_multiply_parts(&product, next + GATE_UP);
  WAIT_FOR_ALL
  const char *up = (const char *)b.sum + a->inner * item_size(a);
  const struct silu_mul silu_mul = {a->call, {b.sum, 1, 2 * a->inner, 0}, {up, 1, 2 * a->inner, 0}, b.inner, a->tokens, a->inner};
  operations_of(a->call)->silu_mul(&silu_mul, mine.begin, mine.end);
  product = rounded_product_of(a, b.inner, a->inner, &layer->down, b.sum, a->hidden);
  round_rows(&product, mine);
  WAIT_FOR_ALL
  integer_multiply_parts(&product, next + DOWN);
  WAIT_FOR_ALL
  add_sum(a, b.sum, mine);
}

static void copy_row(void *to, int64_t to_row, const void *from, int64_t from_row, int64_t bytes) {
  memcpy((char *)to + to_row * bytes, (const char *)from + from_row * bytes, bytes);
}

/* The rest of the last layer for the rows that are read behind it. */
static void compute_rest_of_wanted(const struct layers *a, const struct layer *layer, int64_t *next) {
  if (!a->num_wanted) return;
  struct layers few = *a;
  few.tokens = a->num_wanted, few.x = a->wanted_x, few.scratch = a->wanted_scratch;
  const struct share mine = share_of(few.tokens);
  const int64_t row_bytes = a->hidden * item_size(a), attended_bytes = a->heads * a->size * item_size(a);
  for (int64_t row = mine.begin; row < mine.end; row++) {
    copy_row(few.x, row, a->x, a->wanted[row], row_bytes);
    copy_row(buffers_of(&few).attended, row, buffers_of(a).attended, a->wanted[row], attended_bytes);
  }
  WAIT_FOR_ALL
  (a->has_integers ? compute_rounded_rest : compute_rest)(&few, layer, next, mine);
  for (int64_t row = mine.begin; row < mine.end; row++) copy_row(a->x, a->wanted[row], few.x, row, row_bytes);
}

static void compute_layers(const struct layers *a, const struct attention_parts *parts, float *scratch, int64_t *next) {
  const struct share mine = share_of(a->tokens);
  for (int64_t number = 0; number < a->count; number++, next += SHARED) {
    const struct layer *layer = a->layers + number;
    (a->has_integers ? compute_rounded_queries : compute_queries)(a, layer, next, mine);
    attend(a, layer, parts, scratch, next, mine);
    if (number + 1 < a->count || a->num_wanted < 0)
      (a->has_integers ? compute_rounded_rest : compute_rest)(a, layer, next, mine);
    else
      compute_rest_of_wanted(a, layer, next);
  }
}

API int64_t tis_layers(const struct layers *a) {
  for (int64_t token = 0; token < a->tokens; token++)
    if (a->slots[token] < 0 || a->slots[token] >= a->num_slots) return OUT_OF_RANGE;
  for (int64_t row = 0; row < a->num_wanted; row++)
    if (a->wanted[row] < 0 || a->wanted[row] >= a->tokens) return OUT_OF_RANGE;
  const struct attention shape = attention_of(a, a->layers, buffers_of(a));
  struct attention_parts parts;
  int64_t code = divide_attention(&shape, &parts);
  if (code) return code;
  int64_t *next = calloc(a->count * SHARED, sizeof *next);
  if (!next) {
    free(parts.parts);
    return NO_MEMORY;
  }
#pragma omp parallel num_threads((int)a->call.threads) reduction(| : code)
  {
    float *scratch = parts.needs_scratch ? aligned_alloc(64, SCRATCH_FLOATS(a->size, a->size) * sizeof(float)) : NULL;
    code = parts.needs_scratch && !scratch ? NO_MEMORY : OK;
    compute_layers(a, &parts, scratch, next);
    free(scratch);
  }
  free(next);
  free(parts.parts);
  return code;
}

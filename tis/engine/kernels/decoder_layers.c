/* Whole decoder layers: norm, attention and MLP of all tokens of a step, layer after layer, by one team of threads.

   Between two operations the threads wait for each other; within one, each takes the next part that nobody has begun. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"

struct layer {
  const void *input_norm, *qkv, *qkv_bias, *query_norm, *key_norm, *output, *output_bias;
  const void *inner_norm, *gate_up, *gate_up_bias, *down, *down_bias;
  void *keys, *values; /* [key_heads, slots, size] */
  int64_t window;
  float input_eps, query_eps, key_eps, inner_eps, scale, softcap;
};

/* All layers have the same shape. */
struct layers {
  struct call call;
  const struct layer *layers;
  int64_t count;
  int64_t hidden, inner, heads, key_heads, size, rotary_size;
  void *x; /* [tokens, hidden]: in and out */
  void *scratch; /* [tokens, hidden + (heads + 2 * key_heads) * size + heads * size + inner] */
  const void *cos, *sin; /* [tokens, rotary_size] */
  int64_t cos_stride, sin_stride;
  const int64_t *slots; /* of each token in the cache */
  const int64_t *runs;  /* [num_runs, 4], as those of attention */
  int64_t tokens, num_runs, num_slots;
  int64_t key_head_stride, key_slot_stride, value_head_stride, value_slot_stride;
};

/* What threads have taken of each operation that they share, in one layer. */
enum { QKV, ATTENTION, OUTPUT, GATE_UP, DOWN, SHARED };

struct buffers {
  void *normed, *qkv, *attended, *inner;
};

static int64_t qkv_width(const struct layers *a) { return (a->heads + 2 * a->key_heads) * a->size; }

static int64_t item_size(const struct layers *a) { return a->call.type == BFLOAT16 ? 2 : 4; }

static struct buffers buffers_of(const struct layers *a) {
  char *at = a->scratch;
  struct buffers b;
  b.normed = at, at += a->tokens * a->hidden * item_size(a);
  b.qkv = at, at += a->tokens * qkv_width(a) * item_size(a);
  b.attended = at, at += a->tokens * a->heads * a->size * item_size(a);
  b.inner = at;
  return b;
}

static void norm(const struct layers *a, const void *weight, float eps, const void *x, void *out, int64_t begin, int64_t end) {
  const struct rms_norm norm = {a->call, {x, 1, a->hidden, 0}, weight, out, a->tokens, a->hidden, eps};
  operations_of(a->call)->rms_norm(&norm, begin, end);
}

/* Norms and rotary embedding of queries and keys, and keys and values to the cache: the tokens of one thread. */
static void place_heads(const struct layers *a, const struct layer *layer, void *qkv, int64_t begin, int64_t end) {
  const struct operations *operations = operations_of(a->call);
  const int64_t item = item_size(a), width = qkv_width(a), size = a->size;
  char *query = qkv, *key = query + a->heads * size * item, *value = key + a->key_heads * size * item;
  for (int64_t token = begin; token < end; token++) {
    const int64_t at = token * width * item;
    if (layer->query_norm) {
      const struct rms_norm queries = {a->call, {query + at, 1, size, 0}, layer->query_norm, query + at, a->heads, size, layer->query_eps};
      const struct rms_norm keys = {a->call, {key + at, 1, size, 0}, layer->key_norm, key + at, a->key_heads, size, layer->key_eps};
      operations->rms_norm(&queries, 0, a->heads);
      operations->rms_norm(&keys, 0, a->key_heads);
    }
  }
  /* Keys lie behind queries, so that both are turned as heads of one row. */
  const struct rotary rotary = {a->call, qkv, a->heads + a->key_heads, a->tokens, a->rotary_size, size, width, a->cos, a->sin, a->cos_stride, a->sin_stride};
  operations->rotary(&rotary, begin, end);
  for (int64_t token = begin; token < end; token++)
    for (int64_t head = 0; head < a->key_heads; head++) {
      const int64_t from = (token * width + head * size) * item;
      memcpy((char *)layer->keys + (head * a->key_head_stride + a->slots[token] * a->key_slot_stride) * item, key + from, size * item);
      memcpy((char *)layer->values + (head * a->value_head_stride + a->slots[token] * a->value_slot_stride) * item, value + from, size * item);
    }
}

static struct product product_of(const struct layers *a, const void *x, int64_t inputs, const void *weights, const void *bias,
                                 void *out, int64_t columns) {
  const struct product product = {a->call, x, inputs, weights, bias, out, columns, NULL, 0, a->tokens, inputs, columns, NOTHING};
  return product;
}

static void compute_layer(const struct layers *a, const struct layer *layer, const struct attention_parts *parts,
                          float *scratch, int64_t *next) {
  const struct buffers b = buffers_of(a);
  const int64_t me = omp_get_thread_num(), all = omp_get_num_threads();
  const int64_t begin = a->tokens * me / all, end = a->tokens * (me + 1) / all, width = qkv_width(a), queries = a->heads * a->size;
  norm(a, layer->input_norm, layer->input_eps, a->x, b.normed, begin, end);
#pragma omp barrier
  struct product product = product_of(a, b.normed, a->hidden, layer->qkv, layer->qkv_bias, b.qkv, width);
  multiply_parts(&product, next + QKV);
#pragma omp barrier
  place_heads(a, layer, b.qkv, begin, end);
#pragma omp barrier
  const struct attention attention = {
      a->call, b.qkv, layer->keys, layer->values, b.attended, a->runs, a->num_runs, a->tokens, a->heads, a->key_heads,
      a->num_slots, a->size, a->size, width, a->key_head_stride, a->key_slot_stride, a->value_head_stride,
      a->value_slot_stride, layer->window, layer->scale, layer->softcap};
  attend_parts(&attention, parts, scratch, next + ATTENTION);
#pragma omp barrier
  product = product_of(a, b.attended, queries, layer->output, layer->output_bias, a->x, a->hidden);
  product.behind = ADD_RESIDUAL, product.residual = a->x, product.residual_stride = a->hidden;
  multiply_parts(&product, next + OUTPUT);
#pragma omp barrier
  norm(a, layer->inner_norm, layer->inner_eps, a->x, b.normed, begin, end);
#pragma omp barrier
  product = product_of(a, b.normed, a->hidden, layer->gate_up, layer->gate_up_bias, b.inner, a->inner);
  product.behind = SILU_MUL;
  multiply_parts(&product, next + GATE_UP);
#pragma omp barrier
  product = product_of(a, b.inner, a->inner, layer->down, layer->down_bias, a->x, a->hidden);
  product.behind = ADD_RESIDUAL, product.residual = a->x, product.residual_stride = a->hidden;
  multiply_parts(&product, next + DOWN);
#pragma omp barrier
}

API int64_t tis_layers(const struct layers *a) {
  for (int64_t token = 0; token < a->tokens; token++)
    if (a->slots[token] < 0 || a->slots[token] >= a->num_slots) return OUT_OF_RANGE;
  const struct attention shape = {.call = a->call, .runs = a->runs, .num_runs = a->num_runs, .tokens = a->tokens, .heads = a->heads, .key_heads = a->key_heads, .slots = a->num_slots, .size = a->size};
  struct attention_parts parts;
  int64_t code = divide_attention(&shape, &parts);
  int64_t *next = code ? NULL : calloc(a->count * SHARED, sizeof *next);
  if (!next) {
    free(parts.parts);
    return code ? code : NO_MEMORY;
  }
#pragma omp parallel num_threads((int)a->call.threads) reduction(| : code)
  {
    float *scratch = parts.needs_scratch ? aligned_alloc(64, SCRATCH_FLOATS(a->size) * sizeof(float)) : NULL;
    code = parts.needs_scratch && !scratch ? NO_MEMORY : OK;
    for (int64_t number = 0; number < a->count; number++)
      compute_layer(a, a->layers + number, &parts, scratch, next + number * SHARED);
    free(scratch);
  }
  free(next);
  free(parts.parts);
  return code;
}

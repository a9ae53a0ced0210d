/* The operations of one instruction set, and their arguments. Strides count elements, not bytes. */
#ifndef TIS_KERNELS_H
#define TIS_KERNELS_H

#include <stdint.h>

enum { FLOAT32 = 0, BFLOAT16 = 1 };
enum { MAX_HEAD_SIZE = 576 };

/* How to compute: the head of all arguments. Python packs the structures below, field by field (native.py). */
struct call {
  int64_t level, type, threads;
};

/* Rows that lie evenly in two dimensions: row r is at (r / inner) * outer_stride + (r % inner) * inner_stride. */
struct rows {
  const void *data;
  int64_t inner, outer_stride, inner_stride;
};

struct rms_norm {
  struct call call;
  struct rows x;
  const void *weight;
  void *out;
  int64_t count, size;
  float eps;
};

struct silu_mul {
  struct call call;
  struct rows gate, up;
  void *out;
  int64_t count, size;
};

struct rotary {
  struct call call;
  void *x; /* [heads, tokens, size] */
  int64_t heads, tokens, size, head_stride, token_stride;
  const void *cos, *sin; /* [tokens, size] */
  int64_t cos_stride, sin_stride;
};

/* Rows of keys or of values, from [heads, tokens, size] to [heads, slots, size]. */
struct copy {
  void *cache;
  int64_t cache_head_stride, cache_slot_stride;
  float *scales; /* [heads, slots] of a cache of 8 bits, whose sizes are multiples of 16; or NULL */
  int64_t scale_head_stride;
  const void *rows;
  int64_t rows_head_stride, rows_token_stride;
  int64_t size;
};

struct write_cache {
  struct call call;
  struct copy keys, values;
  const int64_t *slots;
  int64_t tokens, heads, num_slots;
};

struct attention {
  struct call call;
  const void *query; /* [heads, tokens, size] */
  const void *keys, *values; /* [key_heads, slots, size], [key_heads, slots, value_size] */
  void *out; /* [tokens, heads, value_size], contiguous */
  const int64_t *runs; /* [num_runs, 4]: begin, length, first_slot, num_before */
  const float *key_scales, *value_scales; /* [key_heads, slots] of a cache of 8 bits, or NULL */
  const float *sinks; /* of each head, or NULL: a score that takes its share of the weights and has no value */
  int64_t num_runs, tokens, heads, key_heads, slots, size, value_size;
  int64_t query_head_stride, query_token_stride, key_head_stride, key_slot_stride, value_head_stride, value_slot_stride;
  int64_t scale_head_stride; /* of both */
  int64_t window; /* 0: none */
  int64_t chunk; /* tokens see only those of their own part of so many; 0: all */
  int64_t is_bidirectional; /* a token sees those behind it in its run, too */
  float scale, softcap; /* softcap 0: none */
};

/* The keys of a few rows, divided into spans that threads share. What each adds up: of each row the largest score, the
   sum of the weights, and the weighted values. Whoever ends the last one writes the result. */
struct key_spans {
  int64_t count, remaining;
  float *sums; /* [count, MAX_FEW_ROWS, 2 + value_size] */
};

/* A part of the attention: the tokens of one run and the query heads of one key head, folded into rows
   (row / groups is the token, row % groups the head), from `begin` to `end`. */
struct attention_part {
  const int64_t *run;
  int64_t key_head, begin, end;
  struct key_spans *spans; /* or NULL: it has all keys */
  int64_t span;
};

/* [rows, inputs] times weights of their type or in bfloat16, to [rows, columns]. SILU_MUL: a block has half as many
   columns as outputs, the gates of its columns and then their factors. */
struct product {
  struct call call;
  const void *x;
  int64_t x_stride;
  const void *weights;
  int64_t weight_type;
  const float *bias; /* padded to whole blocks, or NULL */
  void *out;
  int64_t out_stride;
  const void *residual;
  int64_t residual_stride;
  int64_t rows, inputs, columns, behind;
};
enum { NOTHING = 0, ADD_RESIDUAL = 1, SILU_MUL = 2, GELU = 3 };
/* Rows whose sums are kept at once, and how long before its use a weight is fetched from the far cache. */
enum { MAX_GROUP_ROWS = 96, FETCHED_BYTES = 1 << 12 };

/* Of each token some rows, each times a share: those at `places`, of which -1 is none. */
struct mix {
  const void *rows; /* [.., size] */
  const int64_t *places; /* [tokens, each] */
  const float *shares;
  void *out; /* [tokens, size] */
  int64_t each, size;
};

struct multiplication {
  int64_t width, step, rows; /* outputs of a block of weights, inputs of a step, rows that are multiplied at once */
  void (*multiply_block)(const struct product *, int64_t block, int64_t begin, int64_t end, const void *following);
};

struct attending {
  /* At most MAX_FEW_ROWS rows; needs no scratch. `following` is the part that is likely to be next, or NULL. */
  void (*few)(const struct attention *, struct attention_part, const struct attention_part *following);
  /* At most MAX_TILE_ROWS rows; `scratch` has SCRATCH_FLOATS floats, aligned to 64 bytes. */
  void (*tile)(const struct attention *, struct attention_part, float *scratch);
};

struct operations {
  struct multiplication by[2]; /* [type of the weights]; rows of BFLOAT16 have weights of BFLOAT16 only */
  void (*add)(void *x, const void *more, int64_t begin, int64_t end);
  void (*mix)(const struct mix *, int64_t begin, int64_t end);
  void (*rms_norm)(const void *arguments, int64_t begin, int64_t end);
  void (*silu_mul)(const void *arguments, int64_t begin, int64_t end);
  void (*rotary)(const void *arguments, int64_t begin, int64_t end);
  void (*round_row)(int8_t *to, float *scale, const void *from, int64_t size);
  struct attending attend[2]; /* [whether the cache has 8 bits]; else it has the type of the rows */
};

enum { MAX_FEW_ROWS = 8, MAX_TILE_ROWS = 96, TILE_KEYS = 64, SPAN_KEYS = 512 };
/* Queries, keys, values and results of a tile, its scores, and a maximum and a sum for each row. */
#define SCRATCH_FLOATS(size, value_size) \
  (((size) + (value_size)) * (MAX_TILE_ROWS + TILE_KEYS) + MAX_TILE_ROWS * (TILE_KEYS + 2))

/* [type]: FLOAT32 or BFLOAT16 */
extern const struct operations tis_scalar[2];
#ifdef __x86_64__
extern const struct operations tis_avx2[2], tis_avx512[2], tis_avx512_bf16[2];
#if __has_include(<amxbf16intrin.h>) || __has_include(<amxintrin.h>)
#define HAS_TILES /* this compiler knows AMX */
extern const struct operations tis_amx[2];
#endif
#endif

#endif

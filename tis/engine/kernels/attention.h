/* Attention of one element type over a run of the cache, mostly causal, by an online softmax: no mask, no limit of keys. */

struct NAME(visible) {
  int64_t first, end;
};

/* The keys that a row may see. */
IN struct NAME(visible) NAME(visible_of)(const struct attention *a, struct attention_part part, int64_t row) {
  int64_t end = part.run[3] + row / (a->heads / a->key_heads) + 1;
  struct NAME(visible) keys = {a->window && end > a->window ? end - a->window : 0, end};
  if (a->chunk && keys.first < (end - 1) / a->chunk * a->chunk) keys.first = (end - 1) / a->chunk * a->chunk;
  if (a->is_bidirectional) {
    const int64_t all = part.run[3] + part.run[1], last = end - 1 + a->window;
    keys.end = a->window && last < all ? last : all;
  }
  return keys;
}

IN const E *NAME(query_of)(const struct attention *a, struct attention_part part, int64_t row) {
  const int64_t groups = a->heads / a->key_heads;
  const int64_t token = part.run[0] + row / groups, head = part.key_head * groups + row % groups;
  return (const E *)a->query + head * a->query_head_stride + token * a->query_token_stride;
}

IN E *NAME(out_of)(const struct attention *a, struct attention_part part, int64_t row) {
  const int64_t groups = a->heads / a->key_heads;
  const int64_t token = part.run[0] + row / groups, head = part.key_head * groups + row % groups;
  return (E *)a->out + (token * a->heads + head) * a->value_size;
}

/* The largest score and the sum of the weights of a row before its keys. */
IN void NAME(begin_row)(const struct attention *a, struct attention_part part, int64_t row, float *largest, float *sum) {
  const int64_t groups = a->heads / a->key_heads;
  *largest = a->sinks ? a->sinks[part.key_head * groups + row % groups] : -INFINITY;
  *sum = a->sinks ? 1 : 0;
}

/* Of the keys and values of a tile, where they have 8 bits. */
struct NAME(scales) {
  float keys[TILE_KEYS], values[TILE_KEYS];
};

IN void NAME(take_scales)(struct NAME(scales) *scales, const struct attention *a, struct attention_part part, int64_t tile, int64_t end) {
  if (!HAS_8_BITS) return;
  const int64_t first = part.key_head * a->scale_head_stride + part.run[2] + tile;
  const int64_t count = end - tile < TILE_KEYS ? end - tile : TILE_KEYS;
  memset(scales, 0, sizeof *scales);
  memcpy(scales->keys, a->key_scales + first, count * sizeof(float));
  memcpy(scales->values, a->value_scales + first, count * sizeof(float));
}

/* Turns dot products from `first` to `end` of a tile into weights, all others into 0. Weights of values with scales are
   for the values without. Returns the factor for what was added up before. */
IN float NAME(weigh)(float *scores, int first, int end, const struct attention *a, const struct NAME(scales) *scales,
                     float *largest, float *sum) {
  const int from = first - first % W, to = end + (W - end % W) % W;
  for (int t = 0; t < first; t++) scores[t] = 0;
  for (int t = end; t < TILE_KEYS; t++) scores[t] = 0;
  for (int t = from; t < to; t += W) {
    vec score = v_mul(v_load_float(scores + t), v_set(a->scale));
    if (HAS_8_BITS) score = v_mul(score, v_load_float(scales->keys + t));
    if (a->softcap > 0) score = v_mul(v_tanh(v_div(score, v_set(a->softcap))), v_set(a->softcap));
    v_store_float(scores + t, score);
  }
  for (int t = from; t < first; t++) scores[t] = -INFINITY;
  for (int t = end; t < to; t++) scores[t] = -INFINITY;
  vec most = v_set(-INFINITY), added = v_zero();
  for (int t = from; t < to; t += W) most = v_max(most, v_load_float(scores + t));
  float now = v_largest(most);
  if (now < *largest) now = *largest;
  /* Where all scores are minus infinity, the difference would be no number. */
  vec shift = v_set(now == -INFINITY ? 0.0f : now);
  for (int t = from; t < to; t += W) {
    vec weight = v_exp(v_sub(v_load_float(scores + t), shift));
    added = v_add(added, weight);
    if (HAS_8_BITS) weight = v_mul(weight, v_load_float(scales->values + t));
    v_store_float(scores + t, weight);
  }
  float factor = *largest == now ? 1.0f : expf(*largest - now);
  *sum = *sum * factor + v_sum(added);
  *largest = now;
  return factor;
}

/* Numbers of the cache, one in a lane; and as pairs: neighbours, half a vector of neighbours, of two rows. */
#if HAS_8_BITS
#define LOAD_CACHED v_load_int8
#define LOAD_CACHED_PAIRS v_load_int8_pairs
#define LOAD_HALF_CACHED_PAIRS v_load_half_int8_pairs
#define LOAD_PAIRS_OF_CACHED v_load_pairs_of_int8
#else
#define LOAD_CACHED LOAD
#define LOAD_CACHED_PAIRS(p) v_load_float((const float *)(p))
#define LOAD_HALF_CACHED_PAIRS(p) v_load_half((const float *)(p))
#define LOAD_PAIRS_OF_CACHED v_load_pairs
#endif

/* Queries are multiplied as pairs of bfloat16 where the CPU can, else in float32. */
#if defined(DOT_BFLOAT) && IS_BFLOAT
enum { NAME(PAIRS) = 1 };
typedef uint16_t NAME(query_element);
IN void NAME(take_query)(uint16_t *to, const uint16_t *from, int64_t size) { memcpy(to, from, size * sizeof(E)); }
#else
enum { NAME(PAIRS) = 0 };
typedef float NAME(query_element);
IN void NAME(take_query)(float *to, const E *from, int64_t size) {
  for (int64_t j = 0; j < size; j += W) v_store_float(to + j, LOAD(from + j));
}
#endif

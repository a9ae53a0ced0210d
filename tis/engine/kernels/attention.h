/* Causal attention of one element type over a run of the cache, by an online softmax: no mask, no limit of keys. */

struct NAME(visible) {
  int64_t first, end;
};

/* The keys that a row may see. */
IN struct NAME(visible) NAME(visible_of)(const struct attention *a, struct attention_part part, int64_t row) {
  int64_t end = part.run[3] + row / (a->heads / a->key_heads) + 1;
  struct NAME(visible) keys = {a->window && end > a->window ? end - a->window : 0, end};
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
  return (E *)a->out + (token * a->heads + head) * a->size;
}

/* Turns dot products from `first` to `end` of a tile into weights, all others into 0.
   Returns the factor for what was added up before. */
IN float NAME(weigh)(float *scores, int first, int end, const struct attention *a, float *largest, float *sum) {
  const int from = first - first % W, to = end + (W - end % W) % W;
  for (int t = 0; t < first; t++) scores[t] = 0;
  for (int t = end; t < TILE_KEYS; t++) scores[t] = 0;
  for (int t = from; t < to; t += W) {
    vec score = v_mul(v_load_float(scores + t), v_set(a->scale));
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
    v_store_float(scores + t, weight);
    added = v_add(added, weight);
  }
  float factor = *largest == now ? 1.0f : expf(*largest - now);
  *sum = *sum * factor + v_sum(added);
  *largest = now;
  return factor;
}

/* --- a few rows: the keys and values are read as they lie in the cache --- */

#if defined(DOT_BFLOAT) && IS_BFLOAT
typedef uint16_t NAME(query_element);
IN float NAME(product)(const uint16_t *query, const uint16_t *key, int64_t size) {
  vec one = v_zero(), other = v_zero();
  int64_t j = 0;
  for (; j + 4 * W <= size; j += 4 * W) {
    one = v_dot(one, v_load_float((const float *)(query + j)), v_load_float((const float *)(key + j)));
    other = v_dot(other, v_load_float((const float *)(query + j + 2 * W)), v_load_float((const float *)(key + j + 2 * W)));
  }
  for (; j + 2 * W <= size; j += 2 * W)
    one = v_dot(one, v_load_float((const float *)(query + j)), v_load_float((const float *)(key + j)));
  if (j < size) other = v_fma(v_load_bfloat(query + j), v_load_bfloat(key + j), other);
  return v_sum(v_add(one, other));
}
IN void NAME(take_query)(uint16_t *to, const uint16_t *from, int64_t size) { memcpy(to, from, size * sizeof(E)); }
#else
typedef float NAME(query_element);
IN float NAME(product)(const float *query, const E *key, int64_t size) {
  vec one = v_zero(), other = v_zero();
  int64_t j = 0;
  for (; j + 2 * W <= size; j += 2 * W) {
    one = v_fma(v_load_float(query + j), LOAD(key + j), one);
    other = v_fma(v_load_float(query + j + W), LOAD(key + j + W), other);
  }
  if (j < size) one = v_fma(v_load_float(query + j), LOAD(key + j), one);
  return v_sum(v_add(one, other));
}
IN void NAME(take_query)(float *to, const E *from, int64_t size) {
  for (int64_t j = 0; j < size; j += W) v_store_float(to + j, LOAD(from + j));
}
#endif

/* Into the cache, for later. */
IN void NAME(fetch)(const E *row, int64_t size) {
  for (int64_t j = 0; j < size; j += 64 / (int64_t)sizeof(E)) __builtin_prefetch(row + j, 0, 2);
}

/* sums[0..1] += weights[0..1] * values, for `count` vectors of a row of values. Meanwhile `ahead` is fetched, if any. */
IN void NAME(add_values)(float *sums, int64_t size, const float *weights, const E *values, int64_t stride, int first,
                         int end, const E *ahead, int64_t ahead_stride, const int count) {
  vec one[4], other[4];
  for (int i = 0; i < count; i++) one[i] = v_load_float(sums + i * W), other[i] = v_load_float(sums + size + i * W);
  for (int t = first; t < end; t++) {
    if (ahead) NAME(fetch)(ahead + t * ahead_stride, size);
    vec weight = v_set(weights[t]), next = v_set(weights[TILE_KEYS + t]);
    for (int i = 0; i < count; i++) {
      vec value = LOAD(values + t * stride + i * W);
      one[i] = v_fma(weight, value, one[i]);
      other[i] = v_fma(next, value, other[i]);
    }
  }
  for (int i = 0; i < count; i++) v_store_float(sums + i * W, one[i]), v_store_float(sums + size + i * W, other[i]);
}

/* Where a part begins to read, or NULL. */
IN const E *NAME(first_keys)(const struct attention *a, const struct attention_part *part) {
  if (!part) return NULL;
  return (const E *)a->keys + part->key_head * a->key_head_stride +
         (part->run[2] + NAME(visible_of)(a, *part, part->begin).first) * a->key_slot_stride;
}

FN void NAME(attend_few)(const struct attention *a, struct attention_part part, const struct attention_part *following) {
  const int num_rows = (int)(part.end - part.begin);
  const int64_t size = a->size;
  const E *keys = (const E *)a->keys + part.key_head * a->key_head_stride + part.run[2] * a->key_slot_stride;
  const E *values = (const E *)a->values + part.key_head * a->value_head_stride + part.run[2] * a->value_slot_stride;
  NAME(query_element) queries[MAX_FEW_ROWS][MAX_HEAD_SIZE];
  float scores[MAX_FEW_ROWS][TILE_KEYS] = {{0}}, sums[MAX_FEW_ROWS * MAX_HEAD_SIZE];
  float largest[MAX_FEW_ROWS], total[MAX_FEW_ROWS];
  struct NAME(visible) visible[MAX_FEW_ROWS];
  for (int row = 0; row < num_rows; row++) {
    NAME(take_query)(queries[row], NAME(query_of)(a, part, part.begin + row), size);
    visible[row] = NAME(visible_of)(a, part, part.begin + row);
    largest[row] = -INFINITY, total[row] = 0;
  }
  /* Rows are added up in pairs: with an odd number, the last one has a partner that nobody reads. */
  memset(sums, 0, (num_rows + num_rows % 2) * size * sizeof(float));
  const int64_t end = NAME(visible_of)(a, part, part.end - 1).end;
  for (int64_t tile = NAME(visible_of)(a, part, part.begin).first; tile < end; tile += TILE_KEYS) {
    int lowest = TILE_KEYS, highest = 0;
    for (int row = 0; row < num_rows; row++) {
      int from = visible[row].first > tile ? (int)(visible[row].first - tile) : 0;
      int to = visible[row].end < tile + TILE_KEYS ? (int)(visible[row].end - tile) : TILE_KEYS;
      if (from >= to) {
        memset(scores[row], 0, sizeof scores[row]);
        continue;
      }
      lowest = from < lowest ? from : lowest, highest = to > highest ? to : highest;
      for (int t = from; t < to; t++) {
        if (row == 0) NAME(fetch)(values + (tile + t) * a->value_slot_stride, size);
        scores[row][t] = NAME(product)(queries[row], keys + (tile + t) * a->key_slot_stride, size);
      }
      float factor = NAME(weigh)(scores[row], from, to, a, &largest[row], &total[row]);
      if (factor != 1)
        for (int64_t j = 0; j < size; j += W)
          v_store_float(sums + row * size + j, v_mul(v_load_float(sums + row * size + j), v_set(factor)));
    }
    const E *ahead = tile + TILE_KEYS < end ? keys + (tile + TILE_KEYS) * a->key_slot_stride : NAME(first_keys)(a, following);
    for (int row = 0; row < num_rows; row += 2, ahead = NULL) {
      int64_t j = 0;
      const E *tile_values = values + tile * a->value_slot_stride;
      for (; j + 4 * W <= size; j += 4 * W)
        NAME(add_values)(sums + row * size + j, size, scores[row], tile_values + j, a->value_slot_stride, lowest, highest,
                         j ? NULL : ahead, a->key_slot_stride, 4);
      for (; j < size; j += W)
        NAME(add_values)(sums + row * size + j, size, scores[row], tile_values + j, a->value_slot_stride, lowest, highest,
                         NULL, 0, 1);
    }
  }
  for (int row = 0; row < num_rows; row++) {
    E *out = NAME(out_of)(a, part, part.begin + row);
    for (int64_t j = 0; j < size; j += W)
      STORE(out + j, v_div(v_load_float(sums + row * size + j), v_set(total[row])));
  }
}

/* --- many rows: keys and values are read once for a tile of rows, and turned for the products --- */

enum { NAME(BLOCK_ROWS) = 6, NAME(BLOCK_VECTORS) = W == 16 ? 4 : 2 };

/* out[6][count * W] += left[6][depth] * right[depth][count * W]; with `pairs`, a float of left and right is two bfloat16. */
IN void NAME(multiply)(float *out, int64_t out_stride, const float *left, int64_t left_stride, const float *right,
                       int64_t right_stride, int64_t depth, const int count, const int pairs) {
  vec sums[6][4];
  (void)pairs;
  for (int r = 0; r < 6; r++)
    for (int i = 0; i < count; i++) sums[r][i] = v_load_float(out + r * out_stride + i * W);
  for (int64_t k = 0; k < depth; k++) {
    vec row[4];
    for (int i = 0; i < count; i++) row[i] = v_load_float(right + k * right_stride + i * W);
    for (int r = 0; r < 6; r++) {
      vec factor = v_set(left[r * left_stride + k]);
      for (int i = 0; i < count; i++) {
#ifdef DOT_BFLOAT
        if (pairs) {
          sums[r][i] = v_dot(sums[r][i], factor, row[i]);
          continue;
        }
#endif
        sums[r][i] = v_fma(factor, row[i], sums[r][i]);
      }
    }
  }
  for (int r = 0; r < 6; r++)
    for (int i = 0; i < count; i++) v_store_float(out + r * out_stride + i * W, sums[r][i]);
}

#if defined(DOT_BFLOAT) && IS_BFLOAT
enum { NAME(PAIRS) = 1 };
#else
enum { NAME(PAIRS) = 0 };
#endif

/* packed[keys][size], or [pairs of keys][size]: the values of a tile. Pairs without values are 0. */
IN void NAME(pack_values)(float *packed, const E *values, int64_t stride, int64_t size, int count) {
#if defined(DOT_BFLOAT) && IS_BFLOAT
  static const E nothing[MAX_HEAD_SIZE];
  for (int t = 0; t < count; t += 2)
    for (int64_t j = 0; j < size; j += W)
      v_store_float(packed + t / 2 * size + j,
                    v_load_pairs(values + t * stride + j, (t + 1 < count ? values + (t + 1) * stride : nothing) + j));
  const int64_t filled = (count + 1) / 2 * size;
  memset(packed + filled, 0, (TILE_KEYS / 2 * size - filled) * sizeof(float));
#else
  for (int t = 0; t < count; t++)
    for (int64_t j = 0; j < size; j += W) v_store_float(packed + t * size + j, LOAD(values + t * stride + j));
#endif
}

/* Weights as the values are: pairs of bfloat16, in place. */
IN void NAME(pack_weights)(float *weights) {
#if defined(DOT_BFLOAT) && IS_BFLOAT
  for (int t = 0; t < TILE_KEYS; t += W) v_store_bfloat((uint16_t *)weights + t, v_load_float(weights + t));
#else
  (void)weights;
#endif
}

/* packed[depth][TILE_KEYS]: the keys of a tile, turned; columns without a key are 0. */
IN void NAME(turn_keys)(float *packed, const E *keys, int64_t stride, int64_t depth, int count) {
  for (int t = 0; t < TILE_KEYS; t += W)
    for (int64_t j = 0; j < depth; j += W) {
      vec square[W];
      for (int i = 0; i < W; i++) {
        const E *key = keys + (t + i) * stride;
        if (t + i >= count)
          square[i] = v_zero();
        else if (NAME(PAIRS)) /* as whole words, of which half a vector may be left */
          square[i] = j + W <= depth ? v_load_float((const float *)key + j) : v_load_half((const float *)key + j);
        else
          square[i] = LOAD(key + j);
      }
      v_turn(square);
      for (int i = 0; i < W && j + i < depth; i++) v_store_float(packed + (j + i) * TILE_KEYS + t, square[i]);
    }
}

/* How many keys of a tile any of `step` rows may see. */
IN int NAME(seen_by)(const struct NAME(visible) *visible, int num_rows, int row, int step, int64_t tile) {
  const int last = row + step < num_rows ? row + step - 1 : num_rows - 1;
  const int64_t seen = visible[last].end - tile;
  return seen < TILE_KEYS ? (int)seen : TILE_KEYS;
}

/* What the tile of one part is computed with. */
struct NAME(tile) {
  const float *queries, *turned, *values;
  float *scores, *sums;
  int64_t size, depth;
};

/* scores[step][seen] = queries * turned keys */
IN void NAME(score)(const struct NAME(tile) *of, int row, int seen) {
  float *scores = of->scores + row * TILE_KEYS;
  const float *queries = of->queries + row * of->depth;
  const int wide = NAME(BLOCK_VECTORS) * W;
  memset(scores, 0, NAME(BLOCK_ROWS) * TILE_KEYS * sizeof(float));
  for (int t = 0; t < seen; t += wide)
    if (W == 16 && seen <= wide / 2)
      NAME(multiply)(scores + t, TILE_KEYS, queries, of->depth, of->turned + t, TILE_KEYS, of->depth, 2, NAME(PAIRS));
    else
      NAME(multiply)(scores + t, TILE_KEYS, queries, of->depth, of->turned + t, TILE_KEYS, of->depth, NAME(BLOCK_VECTORS),
                     NAME(PAIRS));
}

/* sums[step][size] += weights * values */
IN void NAME(add_weighed)(const struct NAME(tile) *of, int row, int seen) {
  float *sums = of->sums + row * of->size;
  const float *weights = of->scores + row * TILE_KEYS;
  const int wide = NAME(BLOCK_VECTORS) * W, steps = NAME(PAIRS) ? (seen + 1) / 2 : seen;
  int64_t j = 0;
  for (; j + wide <= of->size; j += wide)
    NAME(multiply)(sums + j, of->size, weights, TILE_KEYS, of->values + j, of->size, steps, NAME(BLOCK_VECTORS), NAME(PAIRS));
  for (; j < of->size; j += W)
    NAME(multiply)(sums + j, of->size, weights, TILE_KEYS, of->values + j, of->size, steps, 1, NAME(PAIRS));
}

#if defined(TILED) && IS_BFLOAT
/* The same with tiles of AMX, for `rows` rows and sizes of whole tiles. */
FN void NAME(score_by_tiles)(const struct NAME(tile) *of, int row, int seen, int rows) {
  for (int t = 0; t < seen; t += TILED_WIDTH) {
    const struct tiled_product product = {
        (const uint16_t *)(of->queries + row * of->depth), of->size, of->turned + t, TILE_KEYS,
        of->scores + row * TILE_KEYS + t, TILE_KEYS, of->size / TILE_INPUTS, rows, 0,
    };
    multiply_tiles(product, NULL, 0);
  }
}

FN void NAME(add_weighed_by_tiles)(const struct NAME(tile) *of, int row, int seen, int rows) {
  for (int64_t j = 0; j < of->size; j += TILED_WIDTH) {
    const struct tiled_product product = {
        (const uint16_t *)(of->scores + row * TILE_KEYS), 2 * TILE_KEYS, of->values + j, of->size,
        of->sums + row * of->size + j, of->size, (seen + TILE_INPUTS - 1) / TILE_INPUTS, rows, 1,
    };
    multiply_tiles(product, NULL, 0);
  }
}
#endif

FN void NAME(attend_tile)(const struct attention *a, struct attention_part part, float *scratch) {
  const int num_rows = (int)(part.end - part.begin);
#if defined(TILED) && IS_BFLOAT
  const int by_tiles = a->size % TILED_WIDTH == 0, step = by_tiles ? TILED_ROWS : NAME(BLOCK_ROWS);
#else
  const int step = NAME(BLOCK_ROWS);
#endif
  const int64_t size = a->size, depth = NAME(PAIRS) ? size / 2 : size;
  const E *keys = (const E *)a->keys + part.key_head * a->key_head_stride + part.run[2] * a->key_slot_stride;
  const E *values = (const E *)a->values + part.key_head * a->value_head_stride + part.run[2] * a->value_slot_stride;
  float *queries = scratch, *sums = queries + MAX_TILE_ROWS * size, *turned = sums + MAX_TILE_ROWS * size;
  float *tile_values = turned + TILE_KEYS * size, *scores = tile_values + TILE_KEYS * size;
  float *largest = scores + MAX_TILE_ROWS * TILE_KEYS, *total = largest + MAX_TILE_ROWS;
  const struct NAME(tile) of = {queries, turned, tile_values, scores, sums, size, depth};
  struct NAME(visible) visible[MAX_TILE_ROWS];
  const int padded = (num_rows + step - 1) / step * step;
  memset(queries, 0, padded * depth * sizeof(float));
  memset(sums, 0, padded * size * sizeof(float));
  for (int row = 0; row < num_rows; row++) {
    NAME(take_query)((NAME(query_element) *)(queries + row * depth), NAME(query_of)(a, part, part.begin + row), size);
    visible[row] = NAME(visible_of)(a, part, part.begin + row);
    largest[row] = -INFINITY, total[row] = 0;
  }
  const int64_t end = NAME(visible_of)(a, part, part.end - 1).end;
  int begin_row = 0, end_row = 0;
  for (int64_t tile = NAME(visible_of)(a, part, part.begin).first; tile < end; tile += TILE_KEYS) {
    const int count = end - tile < TILE_KEYS ? (int)(end - tile) : TILE_KEYS;
    while (end_row < num_rows && visible[end_row].first < tile + TILE_KEYS) end_row++;
    while (visible[begin_row].end <= tile) begin_row++;
    const int from_row = begin_row / step * step;
    NAME(turn_keys)(turned, keys + tile * a->key_slot_stride, a->key_slot_stride, depth, count);
    for (int row = from_row; row < end_row; row += step) {
      const int seen = NAME(seen_by)(visible, num_rows, row, step, tile);
#if defined(TILED) && IS_BFLOAT
      if (by_tiles)
        NAME(score_by_tiles)(&of, row, seen, num_rows - row < step ? num_rows - row : step);
      else
#endif
        NAME(score)(&of, row, seen);
      for (int r = row; r < row + step; r++) {
        if (r < begin_row || r >= end_row) {
          memset(scores + r * TILE_KEYS, 0, TILE_KEYS * sizeof(float));
          continue;
        }
        int first = visible[r].first > tile ? (int)(visible[r].first - tile) : 0;
        int last = visible[r].end < tile + TILE_KEYS ? (int)(visible[r].end - tile) : TILE_KEYS;
        float factor = NAME(weigh)(scores + r * TILE_KEYS, first, last, a, &largest[r], &total[r]);
        NAME(pack_weights)(scores + r * TILE_KEYS);
        if (factor != 1)
          for (int64_t j = 0; j < size; j += W)
            v_store_float(sums + r * size + j, v_mul(v_load_float(sums + r * size + j), v_set(factor)));
      }
    }
    NAME(pack_values)(tile_values, values + tile * a->value_slot_stride, a->value_slot_stride, size, count);
    for (int row = from_row; row < end_row; row += step) {
      const int seen = NAME(seen_by)(visible, num_rows, row, step, tile);
#if defined(TILED) && IS_BFLOAT
      if (by_tiles)
        NAME(add_weighed_by_tiles)(&of, row, seen, num_rows - row < step ? num_rows - row : step);
      else
#endif
        NAME(add_weighed)(&of, row, seen);
    }
  }
#if defined(TILED) && IS_BFLOAT
  leave_tiles();
#endif
  for (int row = 0; row < num_rows; row++) {
    E *out = NAME(out_of)(a, part, part.begin + row);
    for (int64_t j = 0; j < size; j += W) STORE(out + j, v_div(v_load_float(sums + row * size + j), v_set(total[row])));
  }
}

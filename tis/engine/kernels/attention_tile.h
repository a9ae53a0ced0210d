/* Attention of many rows: keys and values are read once for a tile of them, and turned for the products. */

enum { NAME(BLOCK_ROWS) = 6, NAME(BLOCK_VECTORS) = W == 16 ? 4 : 2 };

#if defined(DOT_BFLOAT) && IS_BFLOAT
IN vec NAME(add_product)(vec sum, vec a, vec b) { return v_dot(sum, a, b); }
#else
IN vec NAME(add_product)(vec sum, vec a, vec b) { return v_fma(a, b, sum); }
#endif

/* out[6][count * W] += left[6][depth] * right[depth][count * W]; with PAIRS, a float of left and right is two bfloat16. */
IN void NAME(multiply)(float *out, int64_t out_stride, const float *left, int64_t left_stride, const float *right,
                       int64_t right_stride, int64_t depth, const int count) {
  vec sums[6][4];
  for (int r = 0; r < 6; r++)
    for (int i = 0; i < count; i++) sums[r][i] = v_load_float(out + r * out_stride + i * W);
  for (int64_t k = 0; k < depth; k++) {
    vec row[4];
    for (int i = 0; i < count; i++) row[i] = v_load_float(right + k * right_stride + i * W);
    for (int r = 0; r < 6; r++) {
      vec factor = v_set(left[r * left_stride + k]);
      for (int i = 0; i < count; i++) sums[r][i] = NAME(add_product)(sums[r][i], factor, row[i]);
    }
  }
  for (int r = 0; r < 6; r++)
    for (int i = 0; i < count; i++) v_store_float(out + r * out_stride + i * W, sums[r][i]);
}

/* packed[keys][size], or [pairs of keys][size]: the values of a tile. Pairs without values are 0. */
IN void NAME(pack_values)(float *packed, const CACHED *values, int64_t stride, int64_t size, int count) {
#if defined(DOT_BFLOAT) && IS_BFLOAT
  static const CACHED nothing[MAX_HEAD_SIZE];
  for (int t = 0; t < count; t += 2)
    for (int64_t j = 0; j < size; j += W)
      v_store_float(packed + t / 2 * size + j,
                    LOAD_PAIRS_OF_CACHED(values + t * stride + j, (t + 1 < count ? values + (t + 1) * stride : nothing) + j));
  const int64_t filled = (count + 1) / 2 * size;
  memset(packed + filled, 0, (TILE_KEYS / 2 * size - filled) * sizeof(float));
#else
  for (int t = 0; t < count; t++)
    for (int64_t j = 0; j < size; j += W) v_store_float(packed + t * size + j, LOAD_CACHED(values + t * stride + j));
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

/* Of a key as the products want it, of which half a vector may be left. */
IN vec NAME(load_keys)(const CACHED *key, int64_t j, int64_t depth) {
#if defined(DOT_BFLOAT) && IS_BFLOAT
  return j + W <= depth ? LOAD_CACHED_PAIRS(key + 2 * j) : LOAD_HALF_CACHED_PAIRS(key + 2 * j);
#else
  (void)depth;
  return LOAD_CACHED(key + j);
#endif
}

/* packed[depth][TILE_KEYS]: the keys of a tile, turned; columns without a key are 0. */
IN void NAME(turn_keys)(float *packed, const CACHED *keys, int64_t stride, int64_t depth, int count) {
  for (int t = 0; t < TILE_KEYS; t += W)
    for (int64_t j = 0; j < depth; j += W) {
      vec square[W];
      for (int i = 0; i < W; i++) {
        const CACHED *key = keys + (t + i) * stride;
        if (t + i >= count)
          square[i] = v_zero();
        else
          square[i] = NAME(load_keys)(key, j, depth);
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

/* What is computed together. */
struct NAME(tile) {
  const float *queries, *turned, *values;
  float *scores, *sums;
  int64_t size, value_size, depth;
  int num_rows, by_amx;
};

/* scores[step][seen] = queries * turned keys */
IN void NAME(score)(const struct NAME(tile) *of, int row, int seen) {
  float *scores = of->scores + row * TILE_KEYS;
  const float *queries = of->queries + row * of->depth;
#if defined(TILED) && IS_BFLOAT
  const int rows = of->num_rows - row < TILED_ROWS ? of->num_rows - row : TILED_ROWS;
  for (int t = 0; of->by_amx && t < seen; t += TILED_WIDTH) {
    const struct tiled_product product = {
        .x = queries,
        .weights = of->turned + t,
        .sums = scores + t,
        .x_stride = of->size * sizeof(uint16_t),
        .weights_stride = TILE_KEYS * sizeof(float),
        .sums_stride = TILE_KEYS * sizeof(float),
        .steps = of->size / TILE_INPUTS,
        .rows = rows,
        .outputs = TILED_WIDTH,
    };
    multiply_bfloat_tiles(&product);
  }
  if (of->by_amx) return;
#endif
  const int wide = NAME(BLOCK_VECTORS) * W;
  memset(scores, 0, NAME(BLOCK_ROWS) * TILE_KEYS * sizeof(float));
  for (int t = 0; t < seen; t += wide)
    if (W == 16 && seen <= wide / 2)
      NAME(multiply)(scores + t, TILE_KEYS, queries, of->depth, of->turned + t, TILE_KEYS, of->depth, 2);
    else
      NAME(multiply)(scores + t, TILE_KEYS, queries, of->depth, of->turned + t, TILE_KEYS, of->depth, NAME(BLOCK_VECTORS));
}

/* sums[step][size] += weights * values */
IN void NAME(add_weighed)(const struct NAME(tile) *of, int row, int seen) {
  const int64_t size = of->value_size;
  float *sums = of->sums + row * size;
  const float *weights = of->scores + row * TILE_KEYS;
#if defined(TILED) && IS_BFLOAT
  const int rows = of->num_rows - row < TILED_ROWS ? of->num_rows - row : TILED_ROWS;
  const int64_t count = (seen + TILE_INPUTS - 1) / TILE_INPUTS;
  for (int64_t j = 0; of->by_amx && j < size; j += TILED_WIDTH) {
    const struct tiled_product product = {
        .x = weights,
        .weights = of->values + j,
        .sums = sums + j,
        .x_stride = TILE_KEYS * sizeof(float),
        .weights_stride = size * sizeof(float),
        .sums_stride = size * sizeof(float),
        .steps = count,
        .rows = rows,
        .outputs = TILED_WIDTH,
        .goes_on = 1,
    };
    multiply_bfloat_tiles(&product);
  }
  if (of->by_amx) return;
#endif
  const int wide = NAME(BLOCK_VECTORS) * W, steps = NAME(PAIRS) ? (seen + 1) / 2 : seen;
  int64_t j = 0;
  for (; j + wide <= size; j += wide)
    NAME(multiply)(sums + j, size, weights, TILE_KEYS, of->values + j, size, steps, NAME(BLOCK_VECTORS));
  for (; j < size; j += W) NAME(multiply)(sums + j, size, weights, TILE_KEYS, of->values + j, size, steps, 1);
}

FN void NAME(attend_tile)(const struct attention *a, struct attention_part part, float *scratch) {
  const int num_rows = (int)(part.end - part.begin);
#if defined(TILED) && IS_BFLOAT
  const int by_amx = a->size % TILED_WIDTH == 0 && a->value_size % TILED_WIDTH == 0, step = by_amx ? TILED_ROWS : NAME(BLOCK_ROWS);
#else
  const int by_amx = 0, step = NAME(BLOCK_ROWS);
#endif
  const int64_t size = a->size, value_size = a->value_size, depth = NAME(PAIRS) ? size / 2 : size;
  const CACHED *keys = (const CACHED *)a->keys + part.key_head * a->key_head_stride + part.run[2] * a->key_slot_stride;
  const CACHED *values = (const CACHED *)a->values + part.key_head * a->value_head_stride + part.run[2] * a->value_slot_stride;
  float *queries = scratch, *sums = queries + MAX_TILE_ROWS * size, *turned = sums + MAX_TILE_ROWS * value_size;
  float *tile_values = turned + TILE_KEYS * size, *scores = tile_values + TILE_KEYS * value_size;
  float *largest = scores + MAX_TILE_ROWS * TILE_KEYS, *total = largest + MAX_TILE_ROWS;
  const struct NAME(tile) of = {queries, turned, tile_values, scores, sums, size, value_size, depth, num_rows, by_amx};
  struct NAME(visible) visible[MAX_TILE_ROWS];
  struct NAME(scales) scales;
  const int padded = (num_rows + step - 1) / step * step;
  memset(queries, 0, padded * depth * sizeof(float));
  memset(sums, 0, padded * value_size * sizeof(float));
  for (int row = 0; row < num_rows; row++) {
    NAME(take_query)((NAME(query_element) *)(queries + row * depth), NAME(query_of)(a, part, part.begin + row), size);
    visible[row] = NAME(visible_of)(a, part, part.begin + row);
    NAME(begin_row)(a, part, part.begin + row, &largest[row], &total[row]);
  }
  const int64_t end = NAME(visible_of)(a, part, part.end - 1).end;
  int begin_row = 0, end_row = 0;
  for (int64_t tile = NAME(visible_of)(a, part, part.begin).first; tile < end; tile += TILE_KEYS) {
    const int count = end - tile < TILE_KEYS ? (int)(end - tile) : TILE_KEYS;
    while (end_row < num_rows && visible[end_row].first < tile + TILE_KEYS) end_row++;
    while (visible[begin_row].end <= tile) begin_row++;
    const int from_row = begin_row / step * step;
    NAME(take_scales)(&scales, a, part, tile, end);
    NAME(turn_keys)(turned, keys + tile * a->key_slot_stride, a->key_slot_stride, depth, count);
    for (int row = from_row; row < end_row; row += step) {
      const int seen = NAME(seen_by)(visible, num_rows, row, step, tile);
      NAME(score)(&of, row, seen);
      for (int r = row; r < row + step; r++) {
        if (r < begin_row || r >= end_row) {
          memset(scores + r * TILE_KEYS, 0, TILE_KEYS * sizeof(float));
          continue;
        }
        int first = visible[r].first > tile ? (int)(visible[r].first - tile) : 0;
        int last = visible[r].end < tile + TILE_KEYS ? (int)(visible[r].end - tile) : TILE_KEYS;
        float factor = NAME(weigh)(scores + r * TILE_KEYS, first, last, a, &scales, &largest[r], &total[r]);
        NAME(pack_weights)(scores + r * TILE_KEYS);
        if (factor != 1)
          for (int64_t j = 0; j < value_size; j += W)
            v_store_float(sums + r * value_size + j, v_mul(v_load_float(sums + r * value_size + j), v_set(factor)));
      }
    }
    NAME(pack_values)(tile_values, values + tile * a->value_slot_stride, a->value_slot_stride, value_size, count);
    for (int row = from_row; row < end_row; row += step) {
      const int seen = NAME(seen_by)(visible, num_rows, row, step, tile);
      NAME(add_weighed)(&of, row, seen);
    }
  }
#if defined(TILED) && IS_BFLOAT
  leave_tiles();
#endif
  for (int row = 0; row < num_rows; row++) {
    E *out = NAME(out_of)(a, part, part.begin + row);
    for (int64_t j = 0; j < value_size; j += W)
      STORE(out + j, v_div(v_load_float(sums + row * value_size + j), v_set(total[row])));
  }
}

#undef LOAD_CACHED
#undef LOAD_CACHED_PAIRS
#undef LOAD_HALF_CACHED_PAIRS
#undef LOAD_PAIRS_OF_CACHED

/* Attention of a few rows: the keys and values are read as they lie in the cache. */

#if HAS_8_BITS
/* Of `count` rows, for which the numbers of a key are widened once. */
IN void NAME(multiply_key)(float *products, const NAME(query_element) (*queries)[MAX_HEAD_SIZE], const int8_t *key,
                           int64_t size, const int count) {
  vec one[4], other[4];
  for (int r = 0; r < count; r++) one[r] = other[r] = v_zero();
  int64_t j = 0;
#if defined(DOT_BFLOAT) && IS_BFLOAT
  for (; j + 4 * W <= size; j += 4 * W) {
    const vec some = v_load_int8_pairs(key + j), more = v_load_int8_pairs(key + j + 2 * W);
    for (int r = 0; r < count; r++) {
      one[r] = v_dot(one[r], v_load_float((const float *)(queries[r] + j)), some);
      other[r] = v_dot(other[r], v_load_float((const float *)(queries[r] + j + 2 * W)), more);
    }
  }
  for (; j < size; j += W) {
    const vec some = v_load_int8(key + j);
    for (int r = 0; r < count; r++) one[r] = v_fma(v_load_bfloat(queries[r] + j), some, one[r]);
  }
#else
  for (; j + 2 * W <= size; j += 2 * W) {
    const vec some = v_load_int8(key + j), more = v_load_int8(key + j + W);
    for (int r = 0; r < count; r++) {
      one[r] = v_fma(v_load_float(queries[r] + j), some, one[r]);
      other[r] = v_fma(v_load_float(queries[r] + j + W), more, other[r]);
    }
  }
  if (j < size) {
    const vec some = v_load_int8(key + j);
    for (int r = 0; r < count; r++) one[r] = v_fma(v_load_float(queries[r] + j), some, one[r]);
  }
#endif
  for (int r = 0; r < count; r++) products[r * TILE_KEYS] = v_sum(v_add(one[r], other[r]));
}

#elif defined(DOT_BFLOAT) && IS_BFLOAT
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
#else
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
#endif

/* Into the cache, for later. */
IN void NAME(fetch)(const CACHED *row, int64_t size) {
  for (int64_t j = 0; j < size; j += 64 / (int64_t)sizeof(CACHED)) __builtin_prefetch(row + j, 0, 2);
}

/* The products of some rows with the keys from `first` to `end` of a tile. Meanwhile its values are fetched. */
IN void NAME(multiply_keys)(float (*scores)[TILE_KEYS], const NAME(query_element) (*queries)[MAX_HEAD_SIZE], int num_rows,
                            const struct attention *a, const CACHED *keys, const CACHED *values, int first, int end) {
  const int64_t size = a->size, stride = a->key_slot_stride;
#if HAS_8_BITS
  for (int row = 0; row < num_rows; row += 4)
    for (int t = first; t < end; t++) {
      if (row == 0) NAME(fetch)(values + t * a->value_slot_stride, a->value_size);
      float *products = scores[row] + t;
      switch (num_rows - row) {
        case 1: NAME(multiply_key)(products, queries + row, keys + t * stride, size, 1); break;
        case 2: NAME(multiply_key)(products, queries + row, keys + t * stride, size, 2); break;
        case 3: NAME(multiply_key)(products, queries + row, keys + t * stride, size, 3); break;
        default: NAME(multiply_key)(products, queries + row, keys + t * stride, size, 4);
      }
    }
#else
  for (int row = 0; row < num_rows; row++)
    for (int t = first; t < end; t++) {
      if (row == 0) NAME(fetch)(values + t * a->value_slot_stride, a->value_size);
      scores[row][t] = NAME(product)(queries[row], keys + t * stride, size);
    }
#endif
}

/* sums[rows] += weights[rows] * values, for `count` vectors of a row of values. Meanwhile `ahead` is fetched, if any. */
IN void NAME(add_values)(float *sums, int64_t size, const float *weights, const CACHED *values, int64_t stride, int first,
                         int end, const CACHED *ahead, int64_t ahead_stride, const int rows, const int count) {
  vec all[4][4];
  for (int r = 0; r < rows; r++)
    for (int i = 0; i < count; i++) all[r][i] = v_load_float(sums + r * size + i * W);
  for (int t = first; t < end; t++) {
    if (ahead) NAME(fetch)(ahead + t * ahead_stride, size);
    vec weight[4];
    for (int r = 0; r < rows; r++) weight[r] = v_set(weights[r * TILE_KEYS + t]);
    for (int i = 0; i < count; i++) {
      const vec value = LOAD_CACHED(values + t * stride + i * W);
      for (int r = 0; r < rows; r++) all[r][i] = v_fma(weight[r], value, all[r][i]);
    }
  }
  for (int r = 0; r < rows; r++)
    for (int i = 0; i < count; i++) v_store_float(sums + r * size + i * W, all[r][i]);
}

/* The same for whole rows of values, `wide` vectors at once: as many sums as there are registers for. */
IN void NAME(add_tile)(float *sums, const struct attention *a, const float *weights, const CACHED *values, int first, int end,
                       const CACHED *ahead, const int rows, const int wide) {
  const int64_t size = a->value_size, stride = a->value_slot_stride;
  int64_t j = 0;
  for (; j + wide * W <= size; j += wide * W)
    NAME(add_values)(sums + j, size, weights, values + j, stride, first, end, j ? NULL : ahead, a->key_slot_stride, rows, wide);
  for (; j < size; j += W) NAME(add_values)(sums + j, size, weights, values + j, stride, first, end, NULL, 0, rows, 1);
}

/* The keys of its part that a row may see; `first` may be at `end` or behind it. */
IN struct NAME(visible) NAME(visible_in_part)(const struct attention *a, struct attention_part part, int64_t row) {
  struct NAME(visible) keys = NAME(visible_of)(a, part, row);
  if (!part.spans) return keys;
  const int64_t first = part.span * SPAN_KEYS, end = first + SPAN_KEYS;
  if (keys.first < first) keys.first = first;
  if (keys.end > end) keys.end = end;
  return keys;
}

/* Where a part begins to read, or NULL. */
IN const CACHED *NAME(first_keys)(const struct attention *a, const struct attention_part *part) {
  if (!part) return NULL;
  const struct NAME(visible) keys = NAME(visible_in_part)(a, *part, part->begin);
  if (keys.first >= keys.end) return NULL;
  return (const CACHED *)a->keys + part->key_head * a->key_head_stride + (part->run[2] + keys.first) * a->key_slot_stride;
}

IN float *NAME(sums_of_span)(const struct attention *a, struct attention_part part, int64_t span, int64_t row) {
  return part.spans->sums + (span * MAX_FEW_ROWS + row - part.begin) * (2 + a->value_size);
}

/* In the order of the spans, whoever computed them. */
FN void NAME(join_spans)(const struct attention *a, struct attention_part part) {
  for (int64_t row = part.begin; row < part.end; row++) {
    float largest = -INFINITY, total = 0, sums[MAX_HEAD_SIZE] = {0};
    for (int64_t span = 0; span < part.spans->count; span++) {
      const float *of_span = NAME(sums_of_span)(a, part, span, row);
      if (of_span[0] > largest) largest = of_span[0];
    }
    for (int64_t span = 0; span < part.spans->count; span++) {
      const float *of_span = NAME(sums_of_span)(a, part, span, row);
      if (of_span[1] == 0) continue; /* it has no key that the row sees */
      const float factor = expf(of_span[0] - largest);
      total += of_span[1] * factor;
      for (int64_t j = 0; j < a->value_size; j += W)
        v_store_float(sums + j, v_fma(v_set(factor), v_load_float(of_span + 2 + j), v_load_float(sums + j)));
    }
    E *out = NAME(out_of)(a, part, row);
    for (int64_t j = 0; j < a->value_size; j += W) STORE(out + j, v_div(v_load_float(sums + j), v_set(total)));
  }
}

/* `sums` are those of the rows of this span. */
IN void NAME(end_span)(const struct attention *a, struct attention_part part, const float *largest, const float *total,
                       const float *sums) {
  for (int64_t row = part.begin; row < part.end; row++) {
    float *kept = NAME(sums_of_span)(a, part, part.span, row);
    kept[0] = largest[row - part.begin], kept[1] = total[row - part.begin];
    memcpy(kept + 2, sums + (row - part.begin) * a->value_size, a->value_size * sizeof(float));
  }
  if (__atomic_sub_fetch(&part.spans->remaining, 1, __ATOMIC_ACQ_REL)) return;
  NAME(join_spans)(a, part);
  part.spans->remaining = part.spans->count; /* for the next layer */
}

FN void NAME(attend_few)(const struct attention *a, struct attention_part part, const struct attention_part *following) {
  const int num_rows = (int)(part.end - part.begin);
  const int64_t size = a->size, value_size = a->value_size;
  const CACHED *keys = (const CACHED *)a->keys + part.key_head * a->key_head_stride + part.run[2] * a->key_slot_stride;
  const CACHED *values = (const CACHED *)a->values + part.key_head * a->value_head_stride + part.run[2] * a->value_slot_stride;
  NAME(query_element) queries[MAX_FEW_ROWS][MAX_HEAD_SIZE];
  float scores[MAX_FEW_ROWS][TILE_KEYS] = {{0}}, sums[MAX_FEW_ROWS * MAX_HEAD_SIZE];
  float largest[MAX_FEW_ROWS], total[MAX_FEW_ROWS];
  struct NAME(visible) visible[MAX_FEW_ROWS];
  struct NAME(scales) scales;
  for (int row = 0; row < num_rows; row++) {
    NAME(take_query)(queries[row], NAME(query_of)(a, part, part.begin + row), size);
    visible[row] = NAME(visible_in_part)(a, part, part.begin + row);
    NAME(begin_row)(a, part, part.begin + row, &largest[row], &total[row]);
    if (part.span) largest[row] = -INFINITY, total[row] = 0;
  }
  memset(sums, 0, (num_rows + 3) / 4 * 4 * value_size * sizeof(float));
  const int64_t end = NAME(visible_in_part)(a, part, part.end - 1).end;
  for (int64_t tile = NAME(visible_in_part)(a, part, part.begin).first; tile < end; tile += TILE_KEYS) {
    int from[MAX_FEW_ROWS], to[MAX_FEW_ROWS], lowest = TILE_KEYS, highest = 0;
    for (int row = 0; row < num_rows; row++) {
      from[row] = visible[row].first > tile ? (int)(visible[row].first - tile) : 0;
      to[row] = visible[row].end < tile + TILE_KEYS ? (int)(visible[row].end - tile) : TILE_KEYS;
      if (from[row] >= to[row]) continue;
      lowest = from[row] < lowest ? from[row] : lowest, highest = to[row] > highest ? to[row] : highest;
    }
    const CACHED *tile_values = values + tile * a->value_slot_stride;
    NAME(take_scales)(&scales, a, part, tile, end);
    NAME(multiply_keys)(scores, queries, num_rows, a, keys + tile * a->key_slot_stride, tile_values, lowest, highest);
    for (int row = 0; row < num_rows; row++) {
      if (from[row] >= to[row]) {
        memset(scores[row], 0, sizeof scores[row]);
        continue;
      }
      float factor = NAME(weigh)(scores[row], from[row], to[row], a, &scales, &largest[row], &total[row]);
      if (factor != 1)
        for (int64_t j = 0; j < value_size; j += W)
          v_store_float(sums + row * value_size + j, v_mul(v_load_float(sums + row * value_size + j), v_set(factor)));
    }
    const CACHED *ahead = tile + TILE_KEYS < end ? keys + (tile + TILE_KEYS) * a->key_slot_stride : NAME(first_keys)(a, following);
    /* In pairs, or four at once where values are widened: the last rows may have partners that nobody reads. */
    for (int row = 0, some = 2; row < num_rows; row += some, ahead = NULL) {
      float *of_rows = sums + row * value_size;
      some = HAS_8_BITS && num_rows - row > 2 ? 4 : 2;
      if (some == 4)
        NAME(add_tile)(of_rows, a, scores[row], tile_values, lowest, highest, ahead, 4, W == 8 ? 2 : 4);
      else
        NAME(add_tile)(of_rows, a, scores[row], tile_values, lowest, highest, ahead, 2, 4);
    }
  }
  if (part.spans) {
    NAME(end_span)(a, part, largest, total, sums);
    return;
  }
  for (int row = 0; row < num_rows; row++) {
    E *out = NAME(out_of)(a, part, part.begin + row);
    for (int64_t j = 0; j < value_size; j += W)
      STORE(out + j, v_div(v_load_float(sums + row * value_size + j), v_set(total[row])));
  }
}

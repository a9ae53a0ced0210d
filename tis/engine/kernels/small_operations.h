/* RMSNorm, SiLU-and-multiply, rotary embedding and sums of rows of one element type: the includer defines E, LOAD, STORE and NAME. */

IN const E *NAME(row)(const struct rows *rows, int64_t number) {
  const E *data = rows->data;
  return data + number / rows->inner * rows->outer_stride + number % rows->inner * rows->inner_stride;
}

/* A vector at the end of a row, where fewer than W elements are left. */
IN vec NAME(load_some)(const E *p, int64_t count) {
  E some[W] = {0};
  memcpy(some, p, count * sizeof(E));
  return LOAD(some);
}
IN void NAME(store_some)(E *p, vec x, int64_t count) {
  E some[W];
  STORE(some, x);
  memcpy(p, some, count * sizeof(E));
}
IN vec NAME(rounded)(vec x) {
  E some[W];
  STORE(some, x);
  return LOAD(some);
}

FN void NAME(add)(void *x, const void *more, int64_t begin, int64_t end) {
  E *to = x;
  const E *from = more;
  for (; begin + W <= end; begin += W) STORE(to + begin, v_add(LOAD(to + begin), LOAD(from + begin)));
  if (begin < end) {
    const int64_t rest = end - begin;
    NAME(store_some)(to + begin, v_add(NAME(load_some)(to + begin, rest), NAME(load_some)(from + begin, rest)), rest);
  }
}

FN void NAME(mix)(const struct mix *a, int64_t begin, int64_t end) {
  const int64_t size = a->size, whole = size - size % W;
  for (int64_t token = begin; token < end; token++) {
    const int64_t *places = a->places + token * a->each;
    const float *shares = a->shares + token * a->each;
    E *out = (E *)a->out + token * size;
    for (int64_t j = 0; j < whole; j += W) {
      vec sum = v_zero();
      for (int64_t i = 0; i < a->each; i++)
        if (places[i] >= 0) sum = v_fma(LOAD((const E *)a->rows + places[i] * size + j), v_set(shares[i]), sum);
      STORE(out + j, sum);
    }
    if (whole < size) {
      vec sum = v_zero();
      for (int64_t i = 0; i < a->each; i++)
        if (places[i] >= 0)
          sum = v_fma(NAME(load_some)((const E *)a->rows + places[i] * size + whole, size - whole), v_set(shares[i]), sum);
      NAME(store_some)(out + whole, sum, size - whole);
    }
  }
}

FN void NAME(rms_norm)(const void *arguments, int64_t begin, int64_t end) {
  const struct rms_norm *a = arguments;
  const E *weight = a->weight;
  const int64_t size = a->size, whole = size - size % W;
  for (int64_t i = begin; i < end; i++) {
    const E *x = NAME(row)(&a->x, i);
    E *out = (E *)a->out + i * size;
    vec squares = v_zero(), more = v_zero();
    int64_t j = 0;
    for (; j + 2 * W <= whole; j += 2 * W) {
      vec one = LOAD(x + j), other = LOAD(x + j + W);
      squares = v_fma(one, one, squares);
      more = v_fma(other, other, more);
    }
    for (; j < whole; j += W) squares = v_fma(LOAD(x + j), LOAD(x + j), squares);
    if (whole < size) {
      vec last = NAME(load_some)(x + whole, size - whole);
      more = v_fma(last, last, more);
    }
    vec factor = v_set(1.0f / sqrtf(v_sum(v_add(squares, more)) / (float)size + a->eps));
    for (j = 0; j < whole; j += W)
      STORE(out + j, v_mul(NAME(rounded)(v_mul(LOAD(x + j), factor)), LOAD(weight + j)));
    if (whole < size) {
      const int64_t rest = size - whole;
      vec last = NAME(rounded)(v_mul(NAME(load_some)(x + whole, rest), factor));
      NAME(store_some)(out + whole, v_mul(last, NAME(load_some)(weight + whole, rest)), rest);
    }
  }
}

/* To 8 bits: a number is its integer times `scale`. Where one is infinite or no number, the scale is no number. */
FN void NAME(round_row)(int8_t *to, float *scale, const void *from, int64_t size) {
  const E *x = from;
  vec most = v_zero(), broken = v_zero();
  for (int64_t j = 0; j < size; j += W) {
    const vec some = LOAD(x + j);
    most = v_max(most, v_max(some, v_sub(v_zero(), some)));
    broken = v_fma(some, v_zero(), broken);
  }
  *scale = v_sum(broken) == 0 ? v_largest(most) / 127 : NAN;
  if (*scale < FLT_MIN) *scale = 0; /* the integers of such a scale would not fit */
  for (int64_t j = 0; j < size; j += W) v_store_int8(to + j, *scale > 0 ? v_div(LOAD(x + j), v_set(*scale)) : v_zero());
}

FN void NAME(silu_mul)(const void *arguments, int64_t begin, int64_t end) {
  const struct silu_mul *a = arguments;
  const int64_t size = a->size, whole = size - size % W;
  for (int64_t i = begin; i < end; i++) {
    const E *gate = NAME(row)(&a->gate, i), *up = NAME(row)(&a->up, i);
    E *out = (E *)a->out + i * size;
    for (int64_t j = 0; j < whole; j += W)
      STORE(out + j, v_mul(NAME(rounded)(v_silu(LOAD(gate + j))), LOAD(up + j)));
    if (whole < size) {
      const int64_t rest = size - whole;
      vec last = NAME(rounded)(v_silu(NAME(load_some)(gate + whole, rest)));
      NAME(store_some)(out + whole, v_mul(last, NAME(load_some)(up + whole, rest)), rest);
    }
  }
}

/* The halves of cos and of sin are equal, so that the first ones do. */
FN void NAME(rotary)(const void *arguments, int64_t begin, int64_t end) {
  const struct rotary *a = arguments;
  const int64_t half = a->size / 2, whole = half - half % W;
  for (int64_t token = begin; token < end; token++) {
    const E *cos = (const E *)a->cos + token * a->cos_stride, *sin = (const E *)a->sin + token * a->sin_stride;
    for (int64_t head = 0; head < a->heads; head++) {
      E *low = (E *)a->x + token * a->token_stride + head * a->head_stride, *high = low + half;
      for (int64_t j = 0; j < whole; j += W) {
        vec p = LOAD(low + j), q = LOAD(high + j), c = LOAD(cos + j), s = LOAD(sin + j);
        STORE(low + j, v_fnma(q, s, v_mul(p, c)));
        STORE(high + j, v_fma(p, s, v_mul(q, c)));
      }
      if (whole < half) {
        const int64_t rest = half - whole;
        vec p = NAME(load_some)(low + whole, rest), q = NAME(load_some)(high + whole, rest);
        vec c = NAME(load_some)(cos + whole, rest), s = NAME(load_some)(sin + whole, rest);
        NAME(store_some)(low + whole, v_fnma(q, s, v_mul(p, c)), rest);
        NAME(store_some)(high + whole, v_fma(p, s, v_mul(q, c)), rest);
      }
    }
  }
}

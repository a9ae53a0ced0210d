/* Layers with states: a short convolution of one more token, and the scans of linear attention (the gated delta rule)
   and of state spaces whose heads forget evenly (Mamba 2). */
#include <omp.h>

#include "parts.h"

struct convolution {
  struct call call;
  void *state;        /* [sequences, channels, size]: the last inputs, which move by one */
  const void *x;      /* [sequences, channels] */
  const void *weight; /* [channels, size] */
  const void *bias;   /* [channels] or NULL */
  void *out;          /* [sequences, channels] */
  int64_t sequences, channels, size, state_stride, x_stride, x_step;
};

struct text_convolution { /* of all tokens, with zeros before the first */
  struct call call;
  const void *x;      /* [tokens, channels] */
  const void *weight; /* [size, channels] */
  const void *bias;   /* [channels] or NULL */
  void *out;          /* [tokens, channels] */
  int64_t tokens, channels, size, x_stride;
};

struct delta_rule { /* all in float32, contiguous but for the sequences of the state */
  struct call call;
  float *state;              /* [sequences, heads, key_size, value_size] */
  const float *query, *key;  /* [sequences, tokens, key_heads, key_size] */
  const float *value;        /* [sequences, tokens, heads, value_size] */
  const float *decay, *beta; /* [sequences, tokens, heads] */
  float *out;                /* [sequences, tokens, heads, value_size] */
  int64_t sequences, tokens, heads, key_heads, key_size, value_size, state_stride;
};

struct state_space { /* all in float32, contiguous but for the sequences of the state */
  struct call call;
  float *state;              /* [sequences, heads, size, state_size] */
  const float *x;            /* [sequences, tokens, heads, size]: times their steps */
  const float *decay;        /* [sequences, tokens, heads] */
  const float *in, *read;    /* [sequences, tokens, groups, state_size] */
  float *out;                /* [sequences, tokens, heads, size] */
  int64_t sequences, tokens, heads, groups, size, state_size, state_stride;
};

enum { SIZES = 16, LANES = 16 }; /* of a state space: numbers of a head, and of a state, at once */
enum { COLUMNS = 32 }; /* of a state, that are scanned at once: [key_size, COLUMNS] stay in the near cache */

#define INLINE static inline __attribute__((always_inline))

INLINE float number_at(const void *data, int64_t at, int is_bfloat) {
  if (!is_bfloat) return ((const float *)data)[at];
  union {
    uint32_t bits;
    float number;
  } one = {(uint32_t)((const uint16_t *)data)[at] << 16};
  return one.number;
}

INLINE void put(void *data, int64_t at, float number, int is_bfloat) {
  if (!is_bfloat) {
    ((float *)data)[at] = number;
    return;
  }
  union {
    float number;
    uint32_t bits;
  } one = {number};
  ((uint16_t *)data)[at] = number != number ? 0x7fc0 : (uint16_t)((one.bits + 0x7fff + (one.bits >> 16 & 1)) >> 16);
}

INLINE void convolve(const struct convolution *a, int64_t size, int is_bfloat) {
  const int64_t bytes = is_bfloat ? 2 : 4;
  for (int64_t sequence = 0; sequence < a->sequences; sequence++) {
    char *state = (char *)a->state + sequence * a->state_stride * bytes;
    const char *x = (const char *)a->x + sequence * a->x_stride * bytes;
    for (int64_t channel = 0; channel < a->channels; channel++) {
      const int64_t first = channel * size;
      float sum = a->bias ? number_at(a->bias, channel, is_bfloat) : 0.0f;
      for (int64_t at = 0; at + 1 < size; at++) {
        const float before = number_at(state, first + at + 1, is_bfloat);
        put(state, first + at, before, is_bfloat);
        sum += before * number_at(a->weight, first + at, is_bfloat);
      }
      const float newest = number_at(x, channel * a->x_step, is_bfloat);
      put(state, first + size - 1, newest, is_bfloat);
      sum += newest * number_at(a->weight, first + size - 1, is_bfloat);
      put(a->out, sequence * a->channels + channel, sum, is_bfloat);
    }
  }
}

API void tis_convolve(const struct convolution *a) {
  const int is_bfloat = a->call.type == BFLOAT16;
  if (a->size == 4 && !is_bfloat)
    convolve(a, 4, 0);
  else if (a->size == 3 && !is_bfloat)
    convolve(a, 3, 0);
  else if (is_bfloat)
    convolve(a, a->size, 1);
  else
    convolve(a, a->size, 0);
}

INLINE void convolve_tokens(const struct text_convolution *a, int64_t begin, int64_t end, int is_bfloat) {
  enum { CHANNELS = 64 };
  for (int64_t token = begin; token < end; token++)
    for (int64_t first = 0; first < a->channels; first += CHANNELS) {
      const int64_t count = first + CHANNELS <= a->channels ? CHANNELS : a->channels - first;
      float sums[CHANNELS] = {0};
      if (a->bias)
        for (int64_t i = 0; i < count; i++) sums[i] = number_at(a->bias, first + i, is_bfloat);
      for (int64_t at = token + 1 < a->size ? a->size - 1 - token : 0; at < a->size; at++) {
        const int64_t row = (token + 1 + at - a->size) * a->x_stride + first, of = at * a->channels + first;
        for (int64_t i = 0; i < count; i++)
          sums[i] += number_at(a->x, row + i, is_bfloat) * number_at(a->weight, of + i, is_bfloat);
      }
      for (int64_t i = 0; i < count; i++) put(a->out, token * a->channels + first + i, sums[i], is_bfloat);
    }
}

INLINE void text_convolution_units(const struct text_convolution *a, int64_t begin, int64_t end) {
  if (a->call.type == BFLOAT16)
    convolve_tokens(a, begin, end, 1);
  else
    convolve_tokens(a, begin, end, 0);
}

/* Some columns of the state of one head, for all tokens. */
INLINE void scan(const struct delta_rule *a, int64_t sequence, int64_t head, int64_t column, int64_t width) {
  const int64_t key_head = head / (a->heads / a->key_heads), keys = a->key_size, values = a->value_size;
  float *state = a->state + sequence * a->state_stride + head * keys * values + column;
  for (int64_t token = 0; token < a->tokens; token++) {
    const int64_t row = sequence * a->tokens + token, at = row * a->heads + head;
    const float *key = a->key + (row * a->key_heads + key_head) * keys;
    const float *query = a->query + (row * a->key_heads + key_head) * keys;
    const float *value = a->value + at * values + column, decay = a->decay[at], beta = a->beta[at];
    float known[COLUMNS] = {0}, new[COLUMNS], out[COLUMNS] = {0};
    for (int64_t i = 0; i < keys; i++) {
      float *of_key = state + i * values;
      for (int64_t j = 0; j < width; j++) {
        of_key[j] *= decay;
        known[j] += of_key[j] * key[i];
      }
    }
    for (int64_t j = 0; j < width; j++) new[j] = (value[j] - known[j]) * beta;
    for (int64_t i = 0; i < keys; i++) {
      float *of_key = state + i * values;
      for (int64_t j = 0; j < width; j++) {
        of_key[j] += key[i] * new[j];
        out[j] += of_key[j] * query[i];
      }
    }
    for (int64_t j = 0; j < width; j++) a->out[at * values + column + j] = out[j];
  }
}

INLINE void scan_units(const struct delta_rule *a, int64_t begin, int64_t end) {
  const int64_t parts = (a->value_size + COLUMNS - 1) / COLUMNS;
  for (int64_t unit = begin; unit < end; unit++) {
    const int64_t column = unit % parts * COLUMNS, head = unit / parts % a->heads, sequence = unit / parts / a->heads;
    if (column + COLUMNS <= a->value_size)
      scan(a, sequence, head, column, COLUMNS);
    else
      scan(a, sequence, head, column, a->value_size - column);
  }
}

/* One number of a head behind all of its state. */
INLINE float add_and_read(float *state, const float *in, const float *read, float x, float decay, int64_t size) {
  float sums[LANES] = {0}, sum = 0.0f;
  const int64_t whole = size - size % LANES;
  for (int64_t i = 0; i < whole; i += LANES)
    for (int64_t j = 0; j < LANES; j++) {
      state[i + j] = state[i + j] * decay + in[i + j] * x;
      sums[j] += state[i + j] * read[i + j];
    }
  for (int64_t i = whole; i < size; i++) {
    state[i] = state[i] * decay + in[i] * x;
    sum += state[i] * read[i];
  }
  for (int64_t j = 0; j < LANES; j++) sum += sums[j];
  return sum;
}

INLINE void state_space_units(const struct state_space *a, int64_t begin, int64_t end) {
  const int64_t parts = (a->size + SIZES - 1) / SIZES;
  for (int64_t unit = begin; unit < end; unit++) {
    const int64_t first = unit % parts * SIZES, head = unit / parts % a->heads, sequence = unit / parts / a->heads;
    const int64_t last = first + SIZES < a->size ? first + SIZES : a->size, group = head / (a->heads / a->groups);
    float *state = a->state + sequence * a->state_stride + head * a->size * a->state_size;
    for (int64_t token = 0; token < a->tokens; token++) {
      const int64_t row = sequence * a->tokens + token, at = row * a->heads + head;
      const float *in = a->in + (row * a->groups + group) * a->state_size;
      const float *read = a->read + (row * a->groups + group) * a->state_size;
      for (int64_t i = first; i < last; i++)
        a->out[at * a->size + i] =
            add_and_read(state + i * a->state_size, in, read, a->x[at * a->size + i], a->decay[at], a->state_size);
    }
  }
}

typedef void units_function(const void *, int64_t, int64_t);
enum { DELTA_RULE, STATE_SPACE, TEXT_CONVOLUTION };
#define UNITS(set)                                                                                             \
  TARGET_OF_##set static void delta_rule_##set(const void *a, int64_t begin, int64_t end) {                    \
    scan_units(a, begin, end);                                                                                 \
  }                                                                                                            \
  TARGET_OF_##set static void state_space_##set(const void *a, int64_t begin, int64_t end) {                   \
    state_space_units(a, begin, end);                                                                          \
  }                                                                                                            \
  TARGET_OF_##set static void text_convolution_##set(const void *a, int64_t begin, int64_t end) {              \
    text_convolution_units(a, begin, end);                                                                     \
  }
#define TARGET_OF_scalar
#define TARGET_OF_avx2 __attribute__((target("avx2,fma")))
#define TARGET_OF_avx512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512")))
UNITS(scalar)
#ifdef __x86_64__
UNITS(avx2)
UNITS(avx512)
#endif

static units_function *units_of(int64_t level, int operation) {
#ifdef __x86_64__
  static units_function *const all[3][3] = {{delta_rule_scalar, state_space_scalar, text_convolution_scalar},
                                            {delta_rule_avx2, state_space_avx2, text_convolution_avx2},
                                            {delta_rule_avx512, state_space_avx512, text_convolution_avx512}};
  return all[level < 2 ? level : 2][operation];
#else
  static units_function *const all[3] = {delta_rule_scalar, state_space_scalar, text_convolution_scalar};
  (void)level;
  return all[operation];
#endif
}

static void compute(units_function *some, const void *arguments, int64_t units, int64_t threads) {
  if (threads > units) threads = units;
  if (threads <= 1) {
    some(arguments, 0, units);
    return;
  }
#pragma omp parallel num_threads((int)threads)
  {
    const int64_t mine = omp_get_thread_num(), all = omp_get_num_threads();
    some(arguments, units * mine / all, units * (mine + 1) / all);
  }
}

API void tis_delta_rule(const struct delta_rule *a) {
  const int64_t units = a->sequences * a->heads * ((a->value_size + COLUMNS - 1) / COLUMNS);
  compute(units_of(a->call.level, DELTA_RULE), a, units, a->call.threads);
}

API void tis_state_space(const struct state_space *a) {
  const int64_t units = a->sequences * a->heads * ((a->size + SIZES - 1) / SIZES);
  compute(units_of(a->call.level, STATE_SPACE), a, units, a->call.threads);
}

API void tis_convolve_text(const struct text_convolution *a) {
  compute(units_of(a->call.level, TEXT_CONVOLUTION), a, a->tokens, a->call.threads);
}

/* What Python calls: chooses the instruction set, checks bounds, divides the work among threads. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

#define API __attribute__((visibility("default")))

/* Python refuses a library of another version: raise it with every change of a signature. */
enum { VERSION = 2 };
/* Products of attention: fewer are computed before a second thread has woken up, in some 20 microseconds. */
enum { MIN_FOR_THREADS = 1 << 18 };
enum { OK = 0, OUT_OF_RANGE = 1, NO_MEMORY = 2 };

API int64_t tis_version(void) { return VERSION; }

/* 0: scalar, 1: AVX2 and FMA, 2: AVX-512, 3: with bfloat16. The system must save the registers, too, which GCC checks. */
API int64_t tis_best_level(void) {
#ifdef __x86_64__
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 0;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512vl"))
    return 1;
  return __builtin_cpu_supports("avx512bf16") ? 3 : 2;
#else
  return 0;
#endif
}

static const struct operations *operations_of(struct call call) {
#ifdef __x86_64__
  static const struct operations *const levels[] = {tis_scalar, tis_avx2, tis_avx512, tis_avx512_bf16};
  return &levels[call.level][call.type];
#else
  return &tis_scalar[call.type];
#endif
}

static void divide(void (*operation)(const void *, int64_t, int64_t), const void *arguments, int64_t count, int64_t threads) {
  if (threads > count) threads = count;
  if (threads <= 1) {
    operation(arguments, 0, count);
    return;
  }
#pragma omp parallel num_threads((int)threads)
  {
    const int64_t mine = omp_get_thread_num(), all = omp_get_num_threads();
    operation(arguments, count * mine / all, count * (mine + 1) / all);
  }
}

API void tis_rms_norm(const struct rms_norm *a) {
  divide(operations_of(a->call)->rms_norm, a, a->count, a->call.threads);
}

API void tis_silu_mul(const struct silu_mul *a) {
  divide(operations_of(a->call)->silu_mul, a, a->count, a->call.threads);
}

API void tis_rotary(const struct rotary *a) { divide(operations_of(a->call)->rotary, a, a->tokens, a->call.threads); }

static void copy_rows(const struct write_cache *a, struct copy copy, int64_t head) {
  const int64_t item = a->call.type == BFLOAT16 ? 2 : 4;
  for (int64_t token = 0; token < a->tokens; token++)
    memcpy((char *)copy.cache + (head * copy.cache_head_stride + a->slots[token] * copy.cache_slot_stride) * item,
           (const char *)copy.rows + (head * copy.rows_head_stride + token * copy.rows_token_stride) * item, a->size * item);
}

API int64_t tis_write_cache(const struct write_cache *a) {
  for (int64_t token = 0; token < a->tokens; token++)
    if (a->slots[token] < 0 || a->slots[token] >= a->num_slots) return OUT_OF_RANGE;
#pragma omp parallel for num_threads((int)a->call.threads) if (a->call.threads > 1)
  for (int64_t head = 0; head < 2 * a->heads; head++) copy_rows(a, head % 2 ? a->values : a->keys, head / 2);
  return OK;
}

static int64_t rows_per_part(const struct attention *a, const int64_t *run) {
  const int64_t rows = run[1] * (a->heads / a->key_heads);
  return rows <= MAX_FEW_ROWS || run[1] == 1 ? MAX_FEW_ROWS : MAX_TILE_ROWS;
}

static int64_t parts_of(const struct attention *a, const int64_t *run) {
  const int64_t rows = run[1] * (a->heads / a->key_heads), most = rows_per_part(a, run);
  return a->key_heads * ((rows + most - 1) / most);
}

API int64_t tis_attend(const struct attention *a) {
  const struct operations *operations = operations_of(a->call);
  int64_t threads = a->call.threads;
  int64_t num_parts = 0, needs_scratch = 0, failed = 0, num_products = 0;
  for (int64_t number = 0; number < a->num_runs; number++) {
    const int64_t *run = a->runs + 4 * number;
    if (run[0] < 0 || run[1] < 0 || run[2] < 0 || run[3] < 0 || run[0] + run[1] > a->tokens ||
        run[2] + run[3] + run[1] > a->slots)
      return OUT_OF_RANGE;
    num_parts += parts_of(a, run);
    num_products += run[1] * (run[1] + run[3]) * a->heads * a->size;
    needs_scratch |= rows_per_part(a, run) == MAX_TILE_ROWS;
  }
  if (!num_parts) return OK;
  struct attention_part *parts = malloc(num_parts * sizeof *parts);
  if (!parts) return NO_MEMORY;
  /* From the last rows to the first, as those have the longest way to go. */
  struct attention_part *part = parts;
  for (int64_t number = a->num_runs - 1; number >= 0; number--) {
    const int64_t *run = a->runs + 4 * number;
    const int64_t rows = run[1] * (a->heads / a->key_heads), most = rows_per_part(a, run);
    for (int64_t begin = (rows + most - 1) / most * most - most; begin >= 0; begin -= most)
      for (int64_t head = 0; head < a->key_heads; head++)
        *part++ = (struct attention_part){run, head, begin, begin + most < rows ? begin + most : rows};
  }
  if (threads > num_parts) threads = num_parts;
  if (num_products < MIN_FOR_THREADS) threads = 1;
#pragma omp parallel num_threads((int)threads) if (threads > 1) reduction(| : failed)
  {
    float *scratch = needs_scratch ? aligned_alloc(64, SCRATCH_FLOATS(a->size) * sizeof(float)) : NULL;
    failed = needs_scratch && !scratch;
#pragma omp for schedule(dynamic, 1)
    for (int64_t number = 0; number < num_parts; number++) {
      if (rows_per_part(a, parts[number].run) == MAX_FEW_ROWS)
        operations->attend_few(a, parts[number]);
      else if (scratch)
        operations->attend_tile(a, parts[number], scratch);
    }
    free(scratch);
  }
  free(parts);
  return failed ? NO_MEMORY : OK;
}

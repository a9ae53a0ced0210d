/* What Python calls: chooses the instruction set, checks bounds, divides the work among threads. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#ifdef HAS_TILES
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* Python refuses a library of another version: raise it with every change of a signature. */
enum { VERSION = 18 };
/* Products of attention: fewer are computed before a second thread has woken up, in some 20 microseconds. */
enum { MIN_FOR_THREADS = 1 << 18 };

API int64_t tis_version(void) { return VERSION; }

int may_use_tiles(void) {
#ifdef HAS_TILES
  enum { REQUEST_STATE = 0x1023, TILE_DATA = 18, AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24, AMX_INT8 = 1 << 25 };
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || ~d & (AMX_BF16 | AMX_TILE | AMX_INT8)) return 0;
  return !syscall(SYS_arch_prctl, REQUEST_STATE, TILE_DATA);
#else
  return 0;
#endif
}

/* 0: scalar, 1: AVX2 and FMA, 2: AVX-512, 3: with bfloat16, 4: and AMX. The system must save the registers, too, which
   GCC checks. */
API int64_t tis_best_level(void) {
#ifdef __x86_64__
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 0;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512vl"))
    return 1;
  if (!__builtin_cpu_supports("avx512bf16")) return 2;
  return may_use_tiles() ? 4 : 3;
#else
  return 0;
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
  for (int64_t token = 0; token < a->tokens; token++) {
    const int64_t slot = a->slots[token], to = head * copy.cache_head_stride + slot * copy.cache_slot_stride;
    const char *from = (const char *)copy.rows + (head * copy.rows_head_stride + token * copy.rows_token_stride) * item;
    if (copy.scales)
      operations_of(a->call)->round_row((int8_t *)copy.cache + to, copy.scales + head * copy.scale_head_stride + slot, from, copy.size);
    else
      memcpy((char *)copy.cache + to * item, from, copy.size * item);
  }
}

API int64_t tis_write_cache(const struct write_cache *a) {
  for (int64_t token = 0; token < a->tokens; token++)
    if (a->slots[token] < 0 || a->slots[token] >= a->num_slots) return OUT_OF_RANGE;
#pragma omp parallel for num_threads((int)a->call.threads) if (a->call.threads > 1)
  for (int64_t head = 0; head < 2 * a->heads; head++) copy_rows(a, head % 2 ? a->values : a->keys, head / 2);
  return OK;
}

API int64_t tis_attend(const struct attention *a) {
  struct attention_parts parts;
  int64_t code = divide_attention(a, &parts), next = 0;
  if (code || !parts.count) return code;
  int64_t threads = parts.num_products < MIN_FOR_THREADS ? 1 : a->call.threads;
  if (threads > parts.count) threads = parts.count;
#pragma omp parallel num_threads((int)threads) if (threads > 1) reduction(| : code)
  {
    float *scratch = parts.needs_scratch ? aligned_alloc(64, SCRATCH_FLOATS(a->size, a->value_size) * sizeof(float)) : NULL;
    code = parts.needs_scratch && !scratch ? NO_MEMORY : OK;
    attend_parts(a, &parts, scratch, &next);
    free(scratch);
  }
  free(parts.parts);
  return code;
}

/* Which blocks `multiply` takes: their outputs, and the inputs of a step. */
API int64_t tis_product_width(int64_t level, int64_t type, int64_t weight_type) {
  return operations_of((struct call){level, type, 1})->by[weight_type].width;
}
API int64_t tis_product_step(int64_t level, int64_t type, int64_t weight_type) {
  return operations_of((struct call){level, type, 1})->by[weight_type].step;
}

API void tis_multiply(const struct product *p) {
  int64_t next = 0;
#pragma omp parallel num_threads((int)p->call.threads) if (p->call.threads > 1)
  multiply_parts(p, &next);
}

#include <stdlib.h>

#include "parts.h"

const struct operations *operations_of(struct call call) {
#ifdef __x86_64__
  static const struct operations *const levels[] = {
      tis_scalar, tis_avx2, tis_avx512, tis_avx512_bf16,
#ifdef HAS_TILES
      tis_amx,
#endif
  };
  return &levels[call.level][call.type];
#else
  return &tis_scalar[call.type];
#endif
}

static int64_t rows_per_part(const struct attention *a, const int64_t *run) {
  const int64_t rows = run[1] * (a->heads / a->key_heads);
  return rows <= MAX_FEW_ROWS || run[1] == 1 ? MAX_FEW_ROWS : MAX_TILE_ROWS;
}

static int64_t parts_of(const struct attention *a, const int64_t *run) {
  const int64_t rows = run[1] * (a->heads / a->key_heads), most = rows_per_part(a, run);
  return a->key_heads * ((rows + most - 1) / most);
}

/* Into how many spans the keys of a run are divided. It depends on the run alone, so that a row has the same bits with
   any company and with any number of threads. */
static int64_t spans_of(const struct attention *a, const int64_t *run) {
  return rows_per_part(a, run) == MAX_FEW_ROWS ? (run[3] + run[1] + SPAN_KEYS - 1) / SPAN_KEYS : 1;
}

static int64_t floats_of_span(const struct attention *a) { return MAX_FEW_ROWS * (2 + a->value_size); }

int64_t divide_attention(const struct attention *a, struct attention_parts *parts) {
  *parts = (struct attention_parts){NULL, 0, 0, 0};
  int64_t num_divided = 0, num_spans = 0;
  for (int64_t number = 0; number < a->num_runs; number++) {
    const int64_t *run = a->runs + 4 * number;
    if (run[0] < 0 || run[1] < 0 || run[2] < 0 || run[3] < 0 || run[0] + run[1] > a->tokens ||
        run[2] + run[3] + run[1] > a->slots)
      return OUT_OF_RANGE;
    const int64_t spans = spans_of(a, run), divided = spans > 1 ? parts_of(a, run) : 0;
    parts->count += parts_of(a, run) * spans;
    num_divided += divided, num_spans += divided * spans;
    parts->num_products += run[1] * (run[1] + run[3]) * a->heads * a->size;
    parts->needs_scratch |= rows_per_part(a, run) == MAX_TILE_ROWS;
  }
  if (!parts->count) return OK;
  struct attention_part *part = parts->parts = malloc(parts->count * sizeof *part + num_divided * sizeof(struct key_spans) +
                                                      num_spans * floats_of_span(a) * sizeof(float));
  if (!part) return NO_MEMORY;
  struct key_spans *divided = (struct key_spans *)(part + parts->count);
  float *sums = (float *)(divided + num_divided);
  /* From the last rows to the first, as those have the longest way to go. */
  for (int64_t number = a->num_runs - 1; number >= 0; number--) {
    const int64_t *run = a->runs + 4 * number;
    const int64_t rows = run[1] * (a->heads / a->key_heads), most = rows_per_part(a, run), spans = spans_of(a, run);
    for (int64_t begin = (rows + most - 1) / most * most - most; begin >= 0; begin -= most)
      for (int64_t head = 0; head < a->key_heads; head++) {
        if (spans > 1) *divided = (struct key_spans){spans, spans, sums}, sums += spans * floats_of_span(a);
        for (int64_t span = 0; span < spans; span++)
          *part++ = (struct attention_part){run,  head, begin, begin + most < rows ? begin + most : rows,
                                            spans > 1 ? divided : NULL, span};
        divided += spans > 1;
      }
  }
  return OK;
}

void attend_parts(const struct attention *a, const struct attention_parts *parts, float *scratch, int64_t *next) {
  const struct attending *attend = &operations_of(a->call)->attend[a->key_scales != NULL];
  for (;;) {
    const int64_t number = __atomic_fetch_add(next, 1, __ATOMIC_RELAXED);
    if (number >= parts->count) return;
    const struct attention_part part = parts->parts[number];
    if (rows_per_part(a, part.run) == MAX_FEW_ROWS)
      attend->few(a, part, number + a->call.threads < parts->count ? parts->parts + number + a->call.threads : NULL);
    else if (scratch)
      attend->tile(a, part, scratch);
  }
}

void multiply_parts(const struct product *p, int64_t *next) {
  const struct multiplication *by = &operations_of(p->call)->by[p->weight_type];
  const int64_t block_columns = by->width / (p->behind == SILU_MUL ? 2 : 1);
  const int64_t blocks = (p->columns + block_columns - 1) / block_columns;
  const int64_t block_bytes = p->inputs * by->width * (p->weight_type == BFLOAT16 ? 2 : 4);
  /* Rows are divided, too, where there are few blocks for many threads. */
  const int64_t groups = (p->rows + by->rows - 1) / by->rows, wanted = (4 * p->call.threads + blocks - 1) / blocks;
  const int64_t splits = p->call.threads == 1 ? 1 : wanted < groups ? wanted : groups;
  for (;;) {
    const int64_t unit = __atomic_fetch_add(next, 1, __ATOMIC_RELAXED), following = (unit + p->call.threads) / splits;
    if (unit >= blocks * splits) return;
    const int64_t block = unit / splits, split = unit % splits;
    const char *ahead = following > block && following < blocks ? (const char *)p->weights + following * block_bytes : NULL;
    by->multiply_block(p, block, groups * split / splits * by->rows,
                       split + 1 == splits ? p->rows : groups * (split + 1) / splits * by->rows, ahead);
  }
}

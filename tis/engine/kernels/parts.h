/* Operations that threads share: each takes the next part that nobody has begun. */
#ifndef TIS_PARTS_H
#define TIS_PARTS_H

#include "kernels.h"

#define API __attribute__((visibility("default")))
enum { OK = 0, OUT_OF_RANGE = 1, NO_MEMORY = 2 };

/* Of a linear layer: blocks in the type of the numbers or in bfloat16, or of 8 or 4 bits, and then with scales (8: and sums). */
struct weights {
  const void *blocks;
  const float *bias, *scales;
  const int32_t *sums;
  int64_t type; /* of the blocks; where they are integers, the level of integer_product.h */
  int64_t group; /* as in integer_product.h */
  const int32_t *order;
};

const struct operations *operations_of(struct call call);
/* Asks the system for tiles of AMX, which it saves only for a process that has asked. */
int may_use_tiles(void);

struct attention_parts {
  struct attention_part *parts; /* to be freed; spans and their sums lie behind them */
  int64_t count, needs_scratch, num_products;
};

/* Checks the runs, too. Returns OK, or a code, and then there is nothing to free. */
int64_t divide_attention(const struct attention *a, struct attention_parts *parts);
/* `next` counts the parts that were taken. Without the scratch that they need, tiles are left out. */
void attend_parts(const struct attention *a, const struct attention_parts *parts, float *scratch, int64_t *next);
void multiply_parts(const struct product *p, int64_t *next);

#endif

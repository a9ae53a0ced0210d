/* tiles.h alone, with software tiles. */
#include "software_tiles.h"
#include "tiles.h"

/* Also leaves the tiles: what comes next finds them as it wants. Strides are in bytes. */
static void multiply(struct tiled_product product, int has_bytes) {
  if (has_bytes)
    multiply_byte_tiles(&product);
  else
    multiply_bfloat_tiles(&product);
  leave_tiles();
  if (is_laid_out) abort();
}

void multiply_bfloat(const void *x, int64_t stride, const void *weights, int64_t outputs, int64_t steps, void *sums,
                     int64_t goes_on, int64_t rows) {
  multiply((struct tiled_product){x, weights, sums, stride, 4 * outputs, 4 * outputs, steps, rows, outputs, (int)goes_on, NULL, 0, 1},
           0);
}

void multiply_bytes(const void *x, int64_t stride, const void *weights, int64_t outputs, int64_t steps, void *sums,
                    int64_t goes_on, int64_t rows) {
  multiply((struct tiled_product){x, weights, sums, stride, 4 * outputs, 4 * outputs, steps, rows, outputs, (int)goes_on, NULL, 0, 1},
           1);
}

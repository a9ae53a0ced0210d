/* One lane, in plain C: for tests, and for what has no better. */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define W 1
#define FN static
#define IN static inline __attribute__((always_inline))
typedef float vec;

IN vec v_zero(void) { return 0.0f; }
IN vec v_set(float x) { return x; }
IN vec v_add(vec a, vec b) { return a + b; }
IN vec v_sub(vec a, vec b) { return a - b; }
IN vec v_mul(vec a, vec b) { return a * b; }
IN vec v_div(vec a, vec b) { return a / b; }
IN vec v_fma(vec a, vec b, vec c) { return a * b + c; }
IN vec v_fnma(vec a, vec b, vec c) { return c - a * b; }
/* The second where one is not a number. */
IN vec v_max(vec a, vec b) { return a > b ? a : b; }
IN vec v_min(vec a, vec b) { return a < b ? a : b; }
IN vec v_round(vec x) { return rintf(x); }
/* x times 2^n, n a whole number */
IN vec v_scale(vec x, vec n) { return ldexpf(x, (int)n); }
/* y where |x| < bound, else z */
IN vec v_if_small(vec x, float bound, vec y, vec z) { return fabsf(x) < bound ? y : z; }
IN float v_sum(vec x) { return x; }
IN float v_largest(vec x) { return x; }

IN vec v_load_float(const float *p) { return *p; }
IN vec v_load_half(const float *p) { return *p; }
IN void v_store_float(float *p, vec x) { *p = x; }
IN vec v_load_bfloat(const uint16_t *p) {
  uint32_t bits = (uint32_t)*p << 16;
  float x;
  memcpy(&x, &bits, 4);
  return x;
}
/* Of a pair of numbers the first, or the second. */
IN vec v_load_low(const uint16_t *p) { return v_load_bfloat(p); }
IN vec v_load_high(const uint16_t *p) { return v_load_bfloat(p + 1); }
IN void v_store_bfloat(uint16_t *p, vec x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  *p = x != x ? 0x7fc0 : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
IN vec v_load_int8(const int8_t *p) { return *p; }
/* Rounded; from -127 to 127. */
IN void v_store_int8(int8_t *p, vec x) { *p = (int8_t)rintf(x); }
IN void v_turn(vec *rows) { (void)rows; }

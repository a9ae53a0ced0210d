/* Functions of a whole vector, good to about one unit in the last place of float32. */

IN vec v_exp(vec x) {
  /* Beyond these, it is 0 or infinite. */
  vec bounded = v_min(v_set(89.0f), v_max(v_set(-104.0f), x));
  vec n = v_round(v_mul(bounded, v_set(1.44269504f)));
  /* log(2) in two parts, so that the product with n is exact */
  vec r = v_fnma(n, v_set(-2.12194440e-4f), v_fnma(n, v_set(0.693359375f), bounded));
  /* The polynomial of Cephes' expf. */
  vec p = v_set(1.9875691500e-4f);
  p = v_fma(p, r, v_set(1.3981999507e-3f));
  p = v_fma(p, r, v_set(8.3334519073e-3f));
  p = v_fma(p, r, v_set(4.1665795894e-2f));
  p = v_fma(p, r, v_set(1.6666665459e-1f));
  p = v_fma(p, r, v_set(5.0000001201e-1f));
  p = v_fma(p, r, v_set(1.0f));
  p = v_fma(p, r, v_set(1.0f));
  return v_scale(p, n);
}

IN vec v_silu(vec x) { return v_div(x, v_add(v_set(1.0f), v_exp(v_sub(v_zero(), x)))); }

IN vec v_tanh(vec x) {
  vec one = v_set(1.0f), two = v_set(2.0f);
  vec far = v_sub(one, v_div(two, v_add(v_exp(v_mul(two, x)), one)));
  /* Near 0 the difference of two ones loses its digits. */
  vec square = v_mul(x, x);
  vec p = v_fma(square, v_set(62.0f / 2835), v_set(-17.0f / 315));
  p = v_fma(square, p, v_set(2.0f / 15));
  p = v_fma(square, p, v_set(-1.0f / 3));
  return v_if_small(x, 0.25f, v_fma(v_mul(x, square), p, x), far);
}

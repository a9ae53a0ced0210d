/* x times the share of a normal distribution that lies below it: GELU in its exact form. */

/* A quotient of polynomials, good to 4e-7; beyond 4, erf is 1 in float32 but for the last bit. */
IN vec v_erf(vec x) {
  const vec z = v_min(v_set(4.0f), v_max(v_set(-4.0f), x)), square = v_mul(z, z);
  vec above = v_set(-2.72614225801306e-10f);
  above = v_fma(above, square, v_set(2.77068142495902e-08f));
  above = v_fma(above, square, v_set(-2.10102402082508e-06f));
  above = v_fma(above, square, v_set(-5.69250639462346e-05f));
  above = v_fma(above, square, v_set(-7.34990630326855e-04f));
  above = v_fma(above, square, v_set(-2.95459980854025e-03f));
  above = v_fma(above, square, v_set(-1.60960333262415e-02f));
  vec below = v_set(-1.45660718464996e-05f);
  below = v_fma(below, square, v_set(-2.13374055278905e-04f));
  below = v_fma(below, square, v_set(-1.68282697438203e-03f));
  below = v_fma(below, square, v_set(-7.37332916720468e-03f));
  below = v_fma(below, square, v_set(-1.42647390514189e-02f));
  return v_div(v_mul(z, above), below);
}

IN vec v_gelu(vec x) {
  const vec half = v_mul(v_set(0.5f), x);
  return v_fma(half, v_erf(v_mul(x, v_set(0.707106781f))), half);
}

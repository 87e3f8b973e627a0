#include "yard.h"

YARDSTICK void counter(const int64_t* m, const int64_t* x, const int64_t* far, int64_t* y) {
  int64_t s = *x;
  for (int64_t i = 0; i < *m; ++i) {
    s += 1;
    asm volatile("" : "+r"(s));  // the count alone would become one addition
    if (s >= *far) break;
  }
  *y = s;
}

YARDSTICK void fibonacci(const int64_t* m, const int64_t* x, const int64_t* z, const int64_t* prime, int64_t* a,
                         int64_t* b, int64_t* all) {
  int64_t p = *x, q = *z;
  for (int64_t i = 0; i < *m; ++i) {
    const int64_t s = (p + q) % *prime;
    all[i] = p;
    p = q;
    q = s;
  }
  *a = p;
  *b = q;
}

YARDSTICK void newton(const float* a, const float* x0, const float* rate, const float* tolerance, float* x,
                      int64_t* iterations) {
  float s = *x0, step = 0;
  int64_t k = 0;
  do {
    step = (*a / s - s) * *rate;
    s += step;
    ++k;
  } while (std::fabs(step) > *rate * *tolerance);
  *x = s;
  *iterations = k;
}

YARDSTICK void hailstone(const int64_t* x0, const int64_t* last, const int64_t* prime, const int64_t* offset,
                         int64_t* x, int64_t* iterations) {
  int64_t s = *x0, k = 0;
  do {
    s = ((s % 2 == 0 ? s / 2 : 3 * s + 1) + *offset) % *prime;
    ++k;
  } while (s != *last);
  *x = s;
  *iterations = k;
}

YARDSTICK void branches(const int64_t* m, const int64_t* x, const int64_t* prime, int64_t* y, int64_t* all) {
  int64_t s = *x;
  for (int64_t i = 0; i < *m; ++i) {
    s = ((s % 2 != 0 ? 3 * s + 1 : s / 2) + 7) % *prime;
    all[i] = s;
  }
  *y = s;
}

YARDSTICK void chain_of_ifs(int64_t links, const int64_t* m, const float* x, const float* step, const float* shrink,
                            float* y) {
  float s = *x;
  for (int64_t i = 0; i < *m; ++i) {
    for (int64_t k = 0; k < links; ++k) s = i % (k + 2) < 1 ? s + *step : s * *shrink;
  }
  *y = s;
}

YARDSTICK void nested(int64_t n, int64_t inner, int64_t width, const float* x, const float* keep, const float* small,
                      float* y, float* all) {
  float v[64];
  std::memcpy(v, x, static_cast<size_t>(width) * sizeof(float));
  for (int64_t i = 0; i < n; ++i) {
    float a[64];
    std::memcpy(a, x, static_cast<size_t>(width) * sizeof(float));
    for (int64_t j = 0; j < inner; ++j) {
      for (int64_t l = 0; l < width; ++l) a[l] = yard::tanh_of(a[l] * *keep + v[l]);
    }
    for (int64_t l = 0; l < width; ++l) all[i * width + l] = v[l] = (a[l] + static_cast<float>(i)) * *small;
  }
  std::memcpy(y, v, static_cast<size_t>(width) * sizeof(float));
}

YARDSTICK void nested_scalars(int64_t n, int64_t inner, const float* x, const float* keep, const float* step,
                              float* y) {
  float s = *x;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < inner; ++j) s = s * *keep + *step;
  }
  *y = s;
}

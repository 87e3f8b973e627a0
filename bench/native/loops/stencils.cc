#include <algorithm>
#include <vector>

#include "yard.h"

// Two arrays with a border around them that take turns.
namespace {

template <class T>
struct Field {
  int64_t rows, columns;
  std::vector<T> now, next;
  Field(int64_t r, int64_t c, const T* from)
      : rows(r), columns(c), now(static_cast<size_t>((r + 2) * (c + 2))), next(now) {
    for (int64_t i = 0; i < r; ++i) std::copy_n(from + i * c, c, row(i));
  }
  T* row(int64_t i) { return now.data() + (i + 1) * (columns + 2) + 1; }
  T* next_row(int64_t i) { return next.data() + (i + 1) * (columns + 2) + 1; }
  void copy_to(T* to) {
    for (int64_t i = 0; i < rows; ++i) std::copy_n(row(i), columns, to + i * columns);
  }
};

}  // namespace

YARDSTICK void heat_line(int64_t n, int64_t size, const float* x0, float* x) {
  Field<float> field(1, size, x0);
  for (int64_t iteration = 0; iteration < n; ++iteration, field.now.swap(field.next)) {
    const float* __restrict s = field.row(0);
    float* __restrict to = field.next_row(0);
    for (int64_t i = 0; i < size; ++i) to[i] = s[i] + (s[i - 1] + s[i + 1] - 2 * s[i]) * 0.2f;
  }
  field.copy_to(x);
}

YARDSTICK void heat_plane(int64_t n, int64_t size, const float* x0, float* x) {
  Field<float> field(size, size, x0);
  for (int64_t iteration = 0; iteration < n; ++iteration, field.now.swap(field.next)) {
    for (int64_t i = 0; i < size; ++i) {
      const float *s = field.row(i), *above = field.row(i - 1), *below = field.row(i + 1);
      float* __restrict to = field.next_row(i);
      for (int64_t j = 0; j < size; ++j) {
        to[j] = s[j] + ((above[j] + below[j]) + (s[j - 1] + s[j + 1]) - 4 * s[j]) * 0.2f;
      }
    }
  }
  field.copy_to(x);
}

YARDSTICK void wave_line(int64_t n, int64_t size, const float* x0, const float* v0, float* x, float* __restrict v) {
  Field<float> field(1, size, x0);
  std::copy_n(v0, size, v);
  for (int64_t iteration = 0; iteration < n; ++iteration, field.now.swap(field.next)) {
    float* __restrict s = field.row(0);
    float* __restrict to = field.next_row(0);
    s[-1] = s[0];
    s[size] = s[size - 1];
    for (int64_t i = 0; i < size; ++i) {
      v[i] += (s[i - 1] + s[i + 1] - 2 * s[i]) * 0.2f;
      to[i] = s[i] + v[i];
    }
  }
  field.copy_to(x);
}

YARDSTICK void wave_plane(int64_t n, int64_t size, const float* x0, const float* v0, float* x, float* __restrict v) {
  Field<float> field(size, size, x0);
  std::copy_n(v0, size * size, v);
  for (int64_t iteration = 0; iteration < n; ++iteration, field.now.swap(field.next)) {
    for (int64_t i = 0; i < size; ++i) {
      float* s = field.row(i);
      s[-1] = s[size - 1];
      s[size] = s[0];
    }
    for (int64_t i = 0; i < size; ++i) {
      const float *s = field.row(i), *above = field.row((i + size - 1) % size), *below = field.row((i + 1) % size);
      float* __restrict to = field.next_row(i);
      float* __restrict u = v + i * size;
      for (int64_t j = 0; j < size; ++j) {
        u[j] += ((above[j] + below[j]) + (s[j - 1] + s[j + 1]) - 4 * s[j]) * 0.1f;
        to[j] = s[j] + u[j];
      }
    }
  }
  field.copy_to(x);
}

YARDSTICK void life(int64_t n, int64_t size, const int32_t* x0, int32_t* x, int32_t* living) {
  Field<int32_t> field(size, size, x0);
  for (int64_t iteration = 0; iteration < n; ++iteration, field.now.swap(field.next)) {
    int32_t count = 0;
    for (int64_t i = 0; i < size; ++i) {
      const int32_t *s = field.row(i), *above = field.row(i - 1), *below = field.row(i + 1);
      int32_t* __restrict to = field.next_row(i);
      for (int64_t j = 0; j < size; ++j) {
        const int32_t around =
            above[j - 1] + above[j] + above[j + 1] + s[j - 1] + s[j + 1] + below[j - 1] + below[j] + below[j + 1];
        to[j] = (around == 3) | ((around == 2) & (s[j] == 1));
        count += to[j];
      }
    }
    living[iteration] = count;
  }
  field.copy_to(x);
}

YARDSTICK void rule_110(int64_t n, int64_t size, const bool* x0, bool* x, bool* rows) {
  Field<uint8_t> field(1, size, reinterpret_cast<const uint8_t*>(x0));
  for (int64_t iteration = 0; iteration < n; ++iteration, field.now.swap(field.next), rows += size) {
    const uint8_t* __restrict s = field.row(0);
    uint8_t* __restrict to = field.next_row(0);
    for (int64_t i = 0; i < size; ++i) {
      to[i] = (s[i] | s[i + 1]) & static_cast<uint8_t>(1 ^ (s[i] & s[i + 1] & s[i - 1]));
    }
    std::memcpy(rows, s, static_cast<size_t>(size));
  }
  field.copy_to(reinterpret_cast<uint8_t*>(x));
}

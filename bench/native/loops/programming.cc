#include <algorithm>

#include "yard.h"

YARDSTICK void edit_distance(int64_t n, int64_t width, const int64_t* a, const int64_t* b, const int64_t* row0,
                             int64_t* row, int64_t* table) {
  const int64_t* above = row0;
  for (int64_t i = 0; i < n; ++i, above = table, table += width) {
    int64_t left = i + 1, corner = i;
    for (int64_t j = 0; j < width; ++j) {
      const int64_t replaced = corner + (a[i] == b[j] ? 0 : 1);
      left = std::min(std::min(above[j] + 1, left + 1), replaced);
      corner = above[j];
      table[j] = left;
    }
  }
  std::memcpy(row, above, static_cast<size_t>(width) * sizeof(int64_t));
}

YARDSTICK void warping(int64_t n, int64_t width, const float* x, const float* y, const float* row0, float* row,
                       float* table) {
  const float* above = row0;
  for (int64_t i = 0; i < n; ++i, above = table, table += width) {
    float left = 1e30f, diagonal = i == 0 ? 0.0f : 1e30f;
    for (int64_t j = 0; j < width; ++j) {
      left = std::min(std::min(left, above[j]), diagonal) + std::fabs(x[i] - y[j]);
      diagonal = above[j];
      table[j] = left;
    }
  }
  std::memcpy(row, above, static_cast<size_t>(width) * sizeof(float));
}

YARDSTICK void warping_by_diagonals(int64_t n, int64_t width, const float* cost, const float* start1,
                                    const float* start2, float* last, float* diagonals) {
  const float *p = start1, *q = start2;
  for (int64_t i = 0; i < n; ++i, cost += width, diagonals += width + 1) {
    diagonals[0] = 1e30f;
    for (int64_t j = 0; j < width; ++j) diagonals[j + 1] = std::min(std::min(p[j], p[j + 1]), q[j]) + cost[j];
    q = p;
    p = diagonals;
  }
  std::memcpy(last, p, static_cast<size_t>(width + 1) * sizeof(float));
}

YARDSTICK void viterbi(int64_t n, int64_t states, const float* start, const float* emissions, const float* moves,
                       float* last, int64_t* back) {
  float v[256], best[256];
  int32_t from[256];
  std::memcpy(v, start, static_cast<size_t>(states) * sizeof(float));
  for (int64_t t = 0; t < n; ++t, emissions += states, back += states) {
    for (int64_t j = 0; j < states; ++j) {
      best[j] = v[0] + moves[j];
      from[j] = 0;
    }
    for (int64_t i = 1; i < states; ++i) {
      for (int64_t j = 0; j < states; ++j) {
        const float score = v[i] + moves[i * states + j];
        from[j] = score > best[j] ? static_cast<int32_t>(i) : from[j];
        best[j] = score > best[j] ? score : best[j];
      }
    }
    for (int64_t j = 0; j < states; ++j) {
      back[j] = from[j];
      v[j] = best[j] + emissions[j];
    }
  }
  std::memcpy(last, v, static_cast<size_t>(states) * sizeof(float));
}

#include <vector>

#include "yard.h"

namespace {

size_t bytes(int64_t floats) {
  return static_cast<size_t>(floats) * sizeof(float);
}

// h' = tanh(x W + h R) for every step; all of x W first.
void rnn(int64_t n, int64_t batch, int64_t width, const float* h, const float* x, const float* W, const float* R,
         float* y) {
  const int64_t row = batch * width;
  yard::product(x, W, n * batch, width, width, y);
  std::vector<float> recurrent(static_cast<size_t>(row));
  for (int64_t t = 0; t < n; ++t, h = y, y += row) {
    if (batch == 1) {
      yard::add_product(h, R, width, width, y);
      for (int64_t j = 0; j < row; ++j) y[j] = yard::tanh_of(y[j]);
      continue;
    }
    yard::product(h, R, batch, width, width, recurrent.data());
    for (int64_t j = 0; j < row; ++j) y[j] = yard::tanh_of(y[j] + recurrent[static_cast<size_t>(j)]);
  }
}

// One step of an LSTM; g holds x W and is written over.
void lstm_step(int64_t width, const float* h, const float* R, const float* bias, float* __restrict g,
               float* __restrict c, float* __restrict out) {
  yard::add_product(h, R, width, 4 * width, g);
  for (int64_t j = 0; j < width; ++j) {
    const float i = yard::sigmoid(g[j] + bias[j]);
    const float o = yard::sigmoid(g[width + j] + bias[width + j]);
    const float f = yard::sigmoid(g[2 * width + j] + bias[2 * width + j]);
    const float z = yard::tanh_of(g[3 * width + j] + bias[3 * width + j]);
    c[j] = f * c[j] + i * z;
    out[j] = o * yard::tanh_of(c[j]);
  }
}

}  // namespace

YARDSTICK void rnn_cell(int64_t n, int64_t batch, int64_t width, const float* h0, const float* x, const float* W,
                        const float* R, float* last, float* y) {
  rnn(n, batch, width, h0, x, W, R, y);
  std::memcpy(last, y + (n - 1) * batch * width, bytes(batch * width));
}

YARDSTICK void stacked_cells(int64_t n, int64_t width, const float* h0, const float* x, const float* W1,
                             const float* R1, const float* W2, const float* R2, float* last1, float* last2, float* y2) {
  std::vector<float> y1(static_cast<size_t>(n * width));
  rnn(n, 1, width, h0, x, W1, R1, y1.data());
  rnn(n, 1, width, h0, y1.data(), W2, R2, y2);
  std::memcpy(last1, y1.data() + (n - 1) * width, bytes(width));
  std::memcpy(last2, y2 + (n - 1) * width, bytes(width));
}

YARDSTICK void lstm_cell(int64_t n, int64_t width, const float* h0, const float* c0, const float* x, const float* W,
                         const float* R, const float* bias, float* last, float* c, float* y) {
  std::vector<float> gates(static_cast<size_t>(n * 4 * width));
  yard::product(x, W, n, width, 4 * width, gates.data());
  std::memcpy(c, c0, bytes(width));
  const float* h = h0;
  for (int64_t t = 0; t < n; ++t, h = y, y += width) {
    lstm_step(width, h, R, bias, gates.data() + t * 4 * width, c, y);
  }
  std::memcpy(last, h, bytes(width));
}

YARDSTICK void gru_cell(int64_t n, int64_t width, const float* h0, const float* x, const float* W, const float* R,
                        const float* bias, float* last, float* y) {
  std::vector<float> gates(static_cast<size_t>(n * 3 * width)), recurrent(static_cast<size_t>(3 * width));
  yard::product(x, W, n, width, 3 * width, gates.data());
  const float* h = h0;
  for (int64_t t = 0; t < n; ++t, h = y, y += width) {
    const float* a = gates.data() + t * 3 * width;
    float* r = recurrent.data();
    std::memset(r, 0, bytes(3 * width));
    yard::add_product(h, R, width, 3 * width, r);
    for (int64_t j = 0; j < width; ++j) {
      const float z = yard::sigmoid(a[j] + bias[j] + r[j]);
      const float reset = yard::sigmoid(a[width + j] + bias[width + j] + r[width + j]);
      const float fresh = yard::tanh_of(a[2 * width + j] + bias[2 * width + j] + reset * r[2 * width + j]);
      y[j] = fresh + z * (h[j] - fresh);
    }
  }
  std::memcpy(last, h, bytes(width));
}

// What one call of an engine does for one step: x W as well. Repeated, to be timed without the call.
YARDSTICK void lstm_step_per_call(int64_t calls, int64_t width, const float* x, const float* W, const float* R,
                                  const float* bias, float* h, float* c) {
  std::vector<float> gates(static_cast<size_t>(4 * width)), next(static_cast<size_t>(width));
  for (int64_t k = 0; k < calls; ++k) {
    std::memset(gates.data(), 0, bytes(4 * width));
    yard::add_product(x, W, width, 4 * width, gates.data());
    lstm_step(width, h, R, bias, gates.data(), c, next.data());
    std::memcpy(h, next.data(), bytes(width));
  }
}

#include <algorithm>

#include "yard.h"

namespace {

size_t bytes(int64_t floats) {
  return static_cast<size_t>(floats) * sizeof(float);
}

// `Step(lane, x, &state)` for each lane of each row; `kWidth` lanes are known to the compiler, 0 any number.
template <int64_t kWidth, class Step>
void scan(int64_t n, int64_t width, const float* h0, const float* x, float* h, float* y, Step step) {
  const int64_t lanes = kWidth ? kWidth : width;
  float s[512];
  std::memcpy(s, h0, bytes(lanes));
  for (int64_t i = 0; i < n; ++i, x += lanes, y += lanes) {
    for (int64_t j = 0; j < lanes; ++j) y[j] = step(x[j], s[j]);
  }
  std::memcpy(h, s, bytes(lanes));
}

}  // namespace

YARDSTICK void running_sum(int64_t n, int64_t width, const float* h0, const float* x, float* __restrict h,
                           float* __restrict y) {
  auto step = [](float e, float& s) { return s += e; };
  if (width == 2) {
    scan<2>(n, width, h0, x, h, y, step);
  } else {
    scan<0>(n, width, h0, x, h, y, step);
  }
}

YARDSTICK void moving_average(int64_t n, int64_t width, const float* h0, const float* x, const float* keep,
                              const float* take, float* __restrict h, float* __restrict y) {
  const float a = *keep, b = *take;
  auto step = [a, b](float e, float& s) {
    s = s * a + e * b;
    return e - s;
  };
  if (width == 8) {
    scan<8>(n, width, h0, x, h, y, step);
  } else {
    scan<0>(n, width, h0, x, h, y, step);
  }
}

YARDSTICK void oscillator(int64_t n, int64_t width, const float* h0, const float* x, const float* keep,
                          float* __restrict h, float* __restrict y) {
  const float a = *keep;
  scan<0>(n, width, h0, x, h, y, [a](float e, float& s) {
    s = yard::tanh_of(s) * a + e;
    return yard::sigmoid(s);
  });
}

YARDSTICK void two_axes(int64_t n, int64_t rows, int64_t width, const float* s0, const float* p, const float* q,
                        float* __restrict last, float* __restrict y, float* __restrict z) {
  float s[64];
  std::memcpy(s, s0, bytes(rows * width));
  for (int64_t t = 0; t < n; ++t) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t j = 0; j < width; ++j) {
        const int64_t lane = r * width + j, forward = (r * n + t) * width + j, backward = lane * n + n - 1 - t;
        s[lane] = s[lane] * 0.5f + p[forward] * q[backward];
        y[forward] = std::max(s[lane], 0.0f);
        z[backward] = s[lane] - q[backward];
      }
    }
  }
  std::memcpy(last, s, bytes(rows * width));
}

// By blocks of points whose state stays in registers for all iterations.
YARDSTICK void mandelbrot(int64_t n, int64_t points, const float* cr, const float* ci, float* __restrict count) {
  constexpr int64_t kBlock = 64;
  for (int64_t at = 0; at < points; at += kBlock) {
    float r[kBlock], m[kBlock], k[kBlock] = {};
    std::memcpy(r, cr + at, sizeof(r));
    std::memcpy(m, ci + at, sizeof(m));
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < kBlock; ++j) {
        const float rr = r[j] * r[j], mm = m[j] * m[j], p = r[j] * m[j];
        const bool inside = rr + mm <= 4.0f;
        k[j] += inside ? 1.0f : 0.0f;
        r[j] = inside ? rr - mm + cr[at + j] : r[j];
        m[j] = inside ? p + p + ci[at + j] : m[j];
      }
    }
    std::memcpy(count + at, k, sizeof(k));
  }
}

// Channel by channel: a channel's states stay in registers for all steps.
YARDSTICK void selective_scan(int64_t n, int64_t channels, int64_t states, const float* h0, const float* delta,
                              const float* x, const float* B, const float* C, const float* A, float* __restrict h,
                              float* __restrict y) {
  constexpr int64_t kStates = 16;
  if (states != kStates) __builtin_trap();
  for (int64_t d = 0; d < channels; ++d) {
    float s[kStates], a[kStates];
    std::memcpy(s, h0 + d * kStates, sizeof(s));
    std::memcpy(a, A + d * kStates, sizeof(a));
    for (int64_t t = 0; t < n; ++t) {
      const float dt = delta[t * channels + d], dx = dt * x[t * channels + d];
      const float *b = B + t * kStates, *c = C + t * kStates;
      float seen[kStates];
      for (int64_t j = 0; j < kStates; ++j) {
        s[j] = yard::exp_of(dt * a[j]) * s[j] + dx * b[j];
        seen[j] = s[j] * c[j];
      }
      for (int64_t step = kStates / 2; step > 0; step /= 2) {
        for (int64_t j = 0; j < step; ++j) seen[j] += seen[j + step];
      }
      y[t * channels + d] = seen[0];
    }
    std::memcpy(h + d * kStates, s, sizeof(s));
  }
}

YARDSTICK void biquad(int64_t n, int64_t channels, const float* z1, const float* z2, const float* x, const float* b0,
                      const float* b1, const float* b2, const float* a1, const float* a2, float* __restrict s1,
                      float* __restrict s2, float* __restrict y) {
  constexpr int64_t kChannels = 2;
  if (channels != kChannels) __builtin_trap();
  float p[kChannels], q[kChannels];
  std::memcpy(p, z1, sizeof(p));
  std::memcpy(q, z2, sizeof(q));
  for (int64_t i = 0; i < n; ++i, x += kChannels, y += kChannels) {
    for (int64_t j = 0; j < kChannels; ++j) {
      y[j] = *b0 * x[j] + p[j];
      p[j] = *b1 * x[j] - *a1 * y[j] + q[j];
      q[j] = *b2 * x[j] - *a2 * y[j];
    }
  }
  std::memcpy(s1, p, sizeof(p));
  std::memcpy(s2, q, sizeof(q));
}

YARDSTICK void kalman(int64_t n, const float* x0, const float* P0, const float* z, const float* M, const float* Q,
                      const float* h, const float* r, float* __restrict x, float* __restrict P,
                      float* __restrict path) {
  constexpr int kStates = 4;
  float s[kStates], V[kStates][kStates];
  std::memcpy(s, x0, sizeof(s));
  std::memcpy(V, P0, sizeof(V));
  for (int64_t t = 0; t < n; ++t, path += kStates) {
    float sp[kStates] = {}, MV[kStates][kStates] = {}, Vp[kStates][kStates], Vh[kStates] = {}, hV[kStates] = {};
    for (int i = 0; i < kStates; ++i) {
      for (int k = 0; k < kStates; ++k) {
        sp[i] += M[i * kStates + k] * s[k];
        for (int j = 0; j < kStates; ++j) MV[i][j] += M[i * kStates + k] * V[k][j];
      }
    }
    for (int i = 0; i < kStates; ++i) {
      for (int j = 0; j < kStates; ++j) {
        float sum = 0;
        for (int k = 0; k < kStates; ++k) sum += MV[i][k] * M[j * kStates + k];
        Vp[i][j] = sum + Q[i * kStates + j];
      }
    }
    float seen = 0, noise = *r;
    for (int i = 0; i < kStates; ++i) {
      for (int j = 0; j < kStates; ++j) {
        Vh[i] += Vp[i][j] * h[j];
        hV[j] += h[i] * Vp[i][j];
      }
      seen += h[i] * sp[i];
      noise += h[i] * Vh[i];
    }
    for (int i = 0; i < kStates; ++i) {
      const float gain = Vh[i] / noise;
      path[i] = s[i] = sp[i] + gain * (z[t] - seen);
      for (int j = 0; j < kStates; ++j) V[i][j] = Vp[i][j] - gain * hV[j];
    }
  }
  std::memcpy(x, s, sizeof(s));
  std::memcpy(P, V, sizeof(V));
}

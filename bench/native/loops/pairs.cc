#include <algorithm>
#include <vector>

#include "yard.h"

// Sums may be taken in any order, so that they vectorise.
#pragma clang fp reassociate(on) contract(fast)

YARDSTICK void bodies(int64_t n, int64_t count, const float* x0, const float* y0, const float* u0, const float* w0,
                      float* __restrict x, float* __restrict y, float* __restrict u, float* __restrict w) {
  const auto bytes = static_cast<size_t>(count) * sizeof(float);
  std::memcpy(x, x0, bytes);
  std::memcpy(y, y0, bytes);
  std::memcpy(u, u0, bytes);
  std::memcpy(w, w0, bytes);
  for (int64_t iteration = 0; iteration < n; ++iteration) {
    for (int64_t i = 0; i < count; ++i) {
      const float xi = x[i], yi = y[i];
      float ax = 0, ay = 0;
      for (int64_t j = 0; j < count; ++j) {
        const float dx = x[j] - xi, dy = y[j] - yi;
        const float soft = dx * dx + dy * dy + 0.01f;
        const float weight = 0.01f / (soft * __builtin_sqrtf(soft));
        ax += dx * weight;
        ay += dy * weight;
      }
      u[i] += ax * 0.001f;
      w[i] += ay * 0.001f;
    }
    for (int64_t i = 0; i < count; ++i) {
      x[i] += u[i] * 0.001f;
      y[i] += w[i] * 0.001f;
    }
  }
}

YARDSTICK void mean_shift(int64_t n, int64_t count, const float* x0, const float* samples, float* __restrict x,
                          float* __restrict density) {
  std::memcpy(x, x0, static_cast<size_t>(count) * sizeof(float));
  for (int64_t iteration = 0; iteration < n; ++iteration) {
    float all = 0;
    for (int64_t i = 0; i < count; ++i) {
      const float at = x[i];
      float mass = 0, moment = 0;
      for (int64_t j = 0; j < count; ++j) {
        const float far = at - samples[j];
        const float weight = yard::exp_of(far * far * -2.0f);
        mass += weight;
        moment += weight * samples[j];
      }
      x[i] = at + (moment / mass - at) * 0.1f;
      all += mass;
    }
    density[iteration] = all / static_cast<float>(count);
  }
}

YARDSTICK void particle_filter(int64_t n, int64_t count, const float* x0, const float* observed, const float* noise,
                               float* __restrict x, float* __restrict mean) {
  std::memcpy(x, x0, static_cast<size_t>(count) * sizeof(float));
  std::vector<float> fresh(static_cast<size_t>(count)), share(fresh);
  for (int64_t iteration = 0; iteration < n; ++iteration, noise += count) {
    for (int64_t i = 0; i < count; ++i) {
      fresh[static_cast<size_t>(i)] = x[i] * 0.95f + noise[i];
      const float far = fresh[static_cast<size_t>(i)] - observed[iteration];
      share[static_cast<size_t>(i)] = yard::exp_of(far * far * -2.0f);
    }
    float total = 0;
    for (float& weight : share) weight = total += weight;
    const float scale = 1 / total;
    for (float& weight : share) weight *= scale;
    float sum = 0;
    const float* shares = share.data();
    for (int64_t i = 0; i < count; ++i) {
      // As the model does it; a walk along both lists would be shorter.
      const float tooth = (static_cast<float>(i) + 0.5f) / static_cast<float>(count);
      int32_t below = 0;
      for (int64_t j = 0; j < count; ++j) below += shares[j] < tooth;
      x[i] = fresh[static_cast<size_t>(std::min<int64_t>(below, count - 1))];
      sum += x[i];
    }
    mean[iteration] = sum / static_cast<float>(count);
  }
}

#include <algorithm>
#include <limits>
#include <vector>

#include "yard.h"

YARDSTICK void clustering(int64_t n, int64_t points, int64_t width, int64_t clusters, const float* p, const float* c0,
                          float* __restrict c) {
  constexpr int64_t kWidth = 16, kClusters = 8;
  if (width != kWidth || clusters != kClusters) __builtin_trap();
  std::memcpy(c, c0, kClusters * kWidth * sizeof(float));
  for (int64_t iteration = 0; iteration < n; ++iteration) {
    float columns[kWidth][kClusters], norms[kClusters] = {}, total[kClusters][kWidth] = {}, count[kClusters] = {};
    for (int64_t j = 0; j < kClusters; ++j) {
      for (int64_t k = 0; k < kWidth; ++k) {
        columns[k][j] = c[j * kWidth + k];
        norms[j] += columns[k][j] * columns[k][j];
      }
    }
    for (int64_t i = 0; i < points; ++i) {
      const float* point = p + i * kWidth;
      float dot[kClusters] = {};
      for (int64_t k = 0; k < kWidth; ++k) {
        for (int64_t j = 0; j < kClusters; ++j) dot[j] += point[k] * columns[k][j];
      }
      int64_t nearest = 0;
      float least = std::numeric_limits<float>::infinity();
      for (int64_t j = 0; j < kClusters; ++j) {
        const float distance = norms[j] - (dot[j] + dot[j]);
        nearest = distance < least ? j : nearest;
        least = std::min(distance, least);
      }
      count[nearest] += 1;
      for (int64_t k = 0; k < kWidth; ++k) total[nearest][k] += point[k];
    }
    for (int64_t j = 0; j < kClusters; ++j) {
      for (int64_t k = 0; k < kWidth; ++k) c[j * kWidth + k] = total[j][k] / std::max(count[j], 1.0f);
    }
  }
}

YARDSTICK void beam_search(int64_t n, int64_t beams, int64_t words, const int64_t* t0, const float* v0,
                           const float* logp, float* v, int64_t* tokens, int64_t* parents) {
  constexpr int64_t kBeams = 4;
  if (beams != kBeams) __builtin_trap();
  int64_t token[kBeams];
  std::memcpy(token, t0, sizeof(token));
  std::memcpy(v, v0, kBeams * sizeof(float));
  for (int64_t iteration = 0; iteration < n; ++iteration, tokens += kBeams, parents += kBeams) {
    float best[kBeams];
    int64_t at[kBeams];
    std::fill(best, best + kBeams, -std::numeric_limits<float>::infinity());
    for (int64_t b = 0; b < kBeams; ++b) {
      const float* row = logp + token[b] * words;
      for (int64_t w = 0; w < words; ++w) {
        const float score = row[w] + v[b];
        if (score <= best[kBeams - 1]) continue;
        int64_t place = kBeams - 1;
        for (; place > 0 && best[place - 1] < score; --place) {
          best[place] = best[place - 1];
          at[place] = at[place - 1];
        }
        best[place] = score;
        at[place] = b * words + w;
      }
    }
    for (int64_t b = 0; b < kBeams; ++b) {
      v[b] = best[b];
      tokens[b] = token[b] = at[b] % words;
      parents[b] = at[b] / words;
    }
  }
}

YARDSTICK void greedy_decode(int64_t n, int64_t words, int64_t width, const int64_t* first, const float* h0,
                             const float* E, const float* W, const float* R, const float* bias, const float* Wo,
                             const int64_t* eos, int64_t* tokens, float* h) {
  std::vector<float> a(static_cast<size_t>(3 * width)), r(a), logits(static_cast<size_t>(words));
  std::memcpy(h, h0, static_cast<size_t>(width) * sizeof(float));
  int64_t token = *first;
  for (int64_t t = 0; t < n; ++t) {
    std::memcpy(a.data(), bias, a.size() * sizeof(float));
    yard::add_product(E + token * width, W, width, 3 * width, a.data());
    std::fill(r.begin(), r.end(), 0.0f);
    yard::add_product(h, R, width, 3 * width, r.data());
    const float *ap = a.data(), *rp = r.data();
    for (int64_t j = 0; j < width; ++j) {
      const float z = yard::sigmoid(ap[j] + rp[j]), reset = yard::sigmoid(ap[width + j] + rp[width + j]);
      const float fresh = yard::tanh_of(ap[2 * width + j] + reset * rp[2 * width + j]);
      h[j] = fresh + z * (h[j] - fresh);
    }
    std::fill(logits.begin(), logits.end(), 0.0f);
    yard::add_product(h, Wo, width, words, logits.data());
    token = std::max_element(logits.begin(), logits.end()) - logits.begin();
    tokens[t] = token;
    if (token == *eos) break;
  }
}

// Keys and values lie head by head with room for all iterations.
YARDSTICK void attention_decoder(int64_t n, int64_t heads, int64_t depth, const float* x0, const float* Wq,
                                 const float* Wk, const float* Wv, const float* Wo, float* x, float* y) {
  constexpr int64_t kDepth = 16, kWidth = 64;
  if (depth != kDepth || heads * depth != kWidth) __builtin_trap();
  std::vector<float> keys(static_cast<size_t>(n * kWidth)), values(keys), p(static_cast<size_t>(n));
  std::memcpy(x, x0, kWidth * sizeof(float));
  for (int64_t t = 0; t < n; ++t, y += kWidth) {
    float q[kWidth] = {}, k[kWidth] = {}, v[kWidth] = {}, mixed[kWidth] = {};
    yard::add_product(x, Wq, kWidth, kWidth, q);
    yard::add_product(x, Wk, kWidth, kWidth, k);
    yard::add_product(x, Wv, kWidth, kWidth, v);
    for (int64_t head = 0; head < heads; ++head) {
      float* K = keys.data() + head * n * kDepth;
      float* V = values.data() + head * n * kDepth;
      std::memcpy(K + t * kDepth, k + head * kDepth, kDepth * sizeof(float));
      std::memcpy(V + t * kDepth, v + head * kDepth, kDepth * sizeof(float));
      float largest = -std::numeric_limits<float>::infinity(), sum = 0;
      for (int64_t i = 0; i <= t; ++i) {
        float parts[kDepth];
        for (int64_t d = 0; d < kDepth; ++d) parts[d] = q[head * kDepth + d] * K[i * kDepth + d];
        for (int64_t step = kDepth / 2; step > 0; step /= 2) {
          for (int64_t d = 0; d < step; ++d) parts[d] += parts[d + step];
        }
        p[static_cast<size_t>(i)] = parts[0] * 0.25f;
        largest = std::max(largest, p[static_cast<size_t>(i)]);
      }
      for (int64_t i = 0; i <= t; ++i) p[static_cast<size_t>(i)] = yard::exp_of(p[static_cast<size_t>(i)] - largest);
      for (int64_t i = 0; i <= t; ++i) {
        const float weight = p[static_cast<size_t>(i)];
        sum += weight;
        for (int64_t d = 0; d < kDepth; ++d) mixed[head * kDepth + d] += weight * V[i * kDepth + d];
      }
      for (int64_t d = 0; d < kDepth; ++d) mixed[head * kDepth + d] /= sum;
    }
    float out[kWidth];
    std::memcpy(out, x, sizeof(out));
    yard::add_product(mixed, Wo, kWidth, kWidth, out);
    for (int64_t j = 0; j < kWidth; ++j) y[j] = x[j] = yard::tanh_of(out[j]);
  }
}

#include <algorithm>
#include <vector>

#include "yard.h"

YARDSTICK void levinson(int64_t n, const float* r, const float* a0, const float* e0, float* a, float* e,
                        float* reflections) {
  std::vector<float> old(static_cast<size_t>(n) + 1);
  a[0] = a0[0];
  float error = *e0;
  for (int64_t i = 0; i < n; ++i) {
    float sum = 0;
    for (int64_t j = 0; j <= i; ++j) sum += a[j] * r[i + 1 - j];
    const float k = -(sum / error);
    a[i + 1] = 0;
    std::memcpy(old.data(), a, static_cast<size_t>(i + 2) * sizeof(float));
    for (int64_t j = 0; j <= i + 1; ++j) a[j] = old[static_cast<size_t>(j)] + old[static_cast<size_t>(i + 1 - j)] * k;
    error = (1 - k * k) * error;
    reflections[i] = k;
  }
  *e = error;
}

YARDSTICK void beam_pruning(int64_t n, int64_t words, const float* s0, const int64_t* t0, const float* logp,
                            float* scores, int64_t* tokens, int64_t* widths) {
  std::vector<float> s{*s0}, flat;
  std::vector<int64_t> t{*t0};
  for (int64_t iteration = 0; iteration < n; ++iteration) {
    flat.resize(s.size() * static_cast<size_t>(words));
    float best = -1e30f;
    for (size_t b = 0; b < s.size(); ++b) {
      const float* row = logp + t[b] * words;
      for (int64_t w = 0; w < words; ++w) {
        const float sum = row[w] + s[b];
        flat[b * static_cast<size_t>(words) + static_cast<size_t>(w)] = sum;
        best = sum > best ? sum : best;
      }
    }
    s.clear(), t.clear();
    for (size_t at = 0; at < flat.size(); ++at) {
      if (flat[at] > best - 2.0f) {
        s.push_back(flat[at] - best);
        t.push_back(static_cast<int64_t>(at) % words);
      }
    }
    widths[iteration] = static_cast<int64_t>(s.size());
  }
  std::copy(s.begin(), s.end(), scores);
  std::copy(t.begin(), t.end(), tokens);
}

YARDSTICK void butterflies(int64_t n, int64_t size, int64_t, const float* re0, const float* im0, float* __restrict re,
                           float* __restrict im) {
  const auto bytes = static_cast<size_t>(size) * sizeof(float);
  std::memcpy(re, re0, bytes);
  std::memcpy(im, im0, bytes);
  std::vector<float> cosine(static_cast<size_t>(size)), sine(static_cast<size_t>(size));
  const float scale = std::sqrt(0.5f);
  int64_t half = 1;
  for (int64_t iteration = 0; iteration < n; ++iteration) {
    for (int64_t j = 0; j < half; ++j) {
      const float angle = static_cast<float>(j) / static_cast<float>(half) * -3.14159265f;
      cosine[static_cast<size_t>(j)] = std::cos(angle);
      sine[static_cast<size_t>(j)] = std::sin(angle);
    }
    for (int64_t group = 0; group < size; group += 2 * half) {
      float *p = re + group, *q = im + group;
      for (int64_t j = 0; j < half; ++j) {
        const float c = cosine[static_cast<size_t>(j)], s = sine[static_cast<size_t>(j)];
        const float tp = p[half + j] * c - q[half + j] * s, tq = p[half + j] * s + q[half + j] * c;
        const float pe = p[j], qe = q[j];
        p[j] = (pe + tp) * scale;
        q[j] = (qe + tq) * scale;
        p[half + j] = (pe - tp) * scale;
        q[half + j] = (qe - tq) * scale;
      }
    }
    half = 2 * half == size ? 1 : 2 * half;
  }
}

YARDSTICK void pieces(int64_t n, const int64_t* lengths, const float* x, const int64_t* from0, float* y,
                      int64_t* last) {
  int64_t from = *from0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t count = lengths[i];
    float sum = 0;
    for (int64_t j = 0; j < count; ++j) sum += x[from + j];
    const float mean = sum / static_cast<float>(count);
    for (int64_t j = 0; j < count; ++j) {
      const float centred = x[from + j] - mean;
      *y++ = centred * centred;
    }
    from += count;
  }
  *last = from;
}

YARDSTICK void drafts(int64_t n, int64_t width, int64_t count, int64_t words, const int64_t* t0, const float* h0,
                      const float* E, const float* R, const float* Wo, int64_t* tokens, float* h, int64_t* accepted) {
  std::vector<float> next(static_cast<size_t>(width)), logits(static_cast<size_t>(words));
  std::vector<int64_t> said{*t0}, drafted(static_cast<size_t>(count));
  std::memcpy(h, h0, static_cast<size_t>(width) * sizeof(float));
  for (int64_t iteration = 0; iteration < n; ++iteration) {
    int64_t token = said.back();
    for (int64_t j = 0; j < count; ++j) {
      std::memcpy(next.data(), E + token * width, static_cast<size_t>(width) * sizeof(float));
      yard::add_product(h, R, width, width, next.data());
      for (int64_t k = 0; k < width; ++k) h[k] = yard::tanh_of(next[static_cast<size_t>(k)]);
      std::fill(logits.begin(), logits.end(), 0.0f);
      yard::add_product(h, Wo, width, words, logits.data());
      token = std::max_element(logits.begin(), logits.end()) - logits.begin();
      drafted[static_cast<size_t>(j)] = token;
    }
    int64_t agreed = 0;
    while (agreed < count && drafted[static_cast<size_t>(agreed)] % 5 < 4) ++agreed;
    accepted[iteration] = agreed;
    said.insert(said.end(), drafted.begin(), drafted.begin() + std::min(agreed + 1, count));
  }
  std::copy(said.begin(), said.end(), tokens);
}

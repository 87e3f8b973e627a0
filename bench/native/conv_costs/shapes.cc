#include "shapes.h"

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <random>

namespace treadle::kernels {

int64_t product(const Spatial& sizes, int axes) {
  int64_t count = 1;
  for (int i = 0; i < axes; ++i) count *= sizes[static_cast<size_t>(i)];
  return count;
}

namespace {

std::mt19937 random_numbers(77);

int64_t pick(std::initializer_list<int64_t> values) {
  return values.begin()[random_numbers() % values.size()];
}

bool is_worth_timing(const ConvShape& s) {
  constexpr int64_t kMostProducts = 200'000'000;
  for (int i = 0; i < s.axes; ++i) {
    if (s.output[static_cast<size_t>(i)] <= 0) return false;
  }
  const int64_t positions = product(s.transposed ? s.input : s.output, s.axes);
  return s.batch * positions * s.in_channels / s.groups * s.out_channels * product(s.kernel, s.axes) <= kMostProducts;
}

struct Plane {
  int64_t height, width;
};

ConvShape image(int64_t in, int64_t out, int64_t groups, Plane plane, int64_t kernel, int64_t stride, int64_t pad,
                bool transposed = false) {
  ConvShape s;
  s.in_channels = in, s.out_channels = out, s.groups = groups, s.transposed = transposed;
  s.input = {plane.height, plane.width};
  for (size_t i = 0; i < 2; ++i) {
    s.kernel[i] = kernel, s.stride[i] = stride, s.pad_begin[i] = pad;
    const int64_t room = s.input[i] + 2 * pad - kernel;
    s.output[i] = transposed ? (s.input[i] - 1) * stride + kernel - 2 * pad : room < 0 ? 0 : room / stride + 1;
  }
  return s;
}

ConvShape signal(int64_t channels, int64_t filters, bool transposed = false) {
  ConvShape s;
  s.axes = 1;
  s.in_channels = channels, s.out_channels = filters, s.transposed = transposed;
  s.input[0] = pick({1, 3, 4, 8, 10, 16, 32, 50, 100, 200, 400, 1000, 4000});
  if (transposed) {
    s.stride[0] = pick({1, 2, 4, 8});
    s.kernel[0] = s.stride[0] == 1 ? 3 : s.stride[0] * pick({1, 2});
    s.pad_begin[0] = (s.kernel[0] - s.stride[0]) / 2;
    s.output[0] = (s.input[0] - 1) * s.stride[0] + s.kernel[0] - 2 * s.pad_begin[0];
    return s;
  }
  s.kernel[0] = pick({1, 2, 3, 3, 5, 7, 9, 16, 31});
  s.stride[0] = pick({1, 1, 1, 2, 4, 8});
  s.dilation[0] = s.kernel[0] == 1 ? 1 : pick({1, 1, 1, 2, 4, 8});
  s.pad_begin[0] = pick({0, s.kernel[0] / 2 * s.dilation[0]});
  const int64_t room = s.input[0] + 2 * s.pad_begin[0] - (s.kernel[0] - 1) * s.dilation[0] - 1;
  s.output[0] = room < 0 ? 0 : room / s.stride[0] + 1;
  return s;
}

ConvShape depthwise(ConvShape s) {
  s.groups = s.out_channels = s.in_channels;
  return s;
}

}  // namespace

std::vector<ConvShape> drawn_shapes(int rounds) {
  std::vector<ConvShape> all;
  for (int i = 0; i < rounds; ++i) {
    const int64_t height = pick({4, 7, 8, 10, 13, 14, 16, 20, 24, 28, 32, 40, 56, 64, 80, 112});
    const Plane plane{height, pick({0, 1}) != 0 ? height : pick({1, 4, 7, 10, 25, 50, 100})};
    const int64_t in = pick({1, 3, 4, 8, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128, 160, 256});
    const int64_t out = pick({1, 2, 4, 8, 9, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128, 256});
    const int64_t kernel = pick({1, 1, 3, 3, 3, 5, 7});
    all.push_back(image(in, out, 1, plane, kernel, pick({1, 1, 2}), kernel / 2));
    const int64_t channels = pick({4, 8, 16, 20, 24, 32, 40, 48, 64, 72, 96, 120, 144, 192, 240, 320});
    const int64_t rows = pick({3, 3, 5, 7, 4, 9});
    all.push_back(image(channels, channels, channels, plane, rows, pick({1, 1, 2, 3}), rows / 2));
    const int64_t channels_of_line = pick({1, 1, 2, 4, 8, 16, 24, 40, 64, 80, 128, 256});
    const ConvShape line = signal(channels_of_line, pick({1, 2, 4, 8, 16, 32, 64, 128, 256}));
    all.push_back(line);
    if (i % 2 == 0) all.push_back(depthwise(line));
    if (i % 2 == 1) {
      const int64_t stride = pick({2, 2, 1, 4}), taps = stride == 1 ? 3 : pick({stride, 2 * stride});
      const Plane small{std::min<int64_t>(plane.height, 32), std::min<int64_t>(plane.width, 50)};
      all.push_back(image(in, out, 1, small, taps, stride, (taps - stride + 1) / 2, true));
    }
    if (i % 4 == 1) {
      const int64_t channels_of_transposed = pick({1, 4, 16, 64, 128});
      all.push_back(signal(channels_of_transposed, pick({1, 4, 16, 64, 128}), true));
    }
    if (i % 4 == 2) {
      const int64_t groups = pick({2, 4, 8});
      const Plane small{std::min<int64_t>(plane.height, 32), std::min<int64_t>(plane.width, 32)};
      all.push_back(image(std::min<int64_t>(in, 64) * groups, std::min<int64_t>(out, 64) * groups, groups, small,
                          pick({1, 3, 3}), 1, 1));
    }
    if (i % 4 == 3) {
      const int64_t few = pick({1, 2, 3});
      all.push_back(image(in, out, 1, {few, few}, pick({1, 3}), 1, 1));
    }
  }
  std::erase_if(all, [](const ConvShape& s) { return !is_worth_timing(s); });
  return all;
}

std::string text(const ConvShape& s) {
  std::string all = s.transposed ? "T" : "C";
  const auto put = [&](const char* before, int64_t number) { all += before + std::to_string(number); };
  put(" n", s.batch);
  put(" ", s.in_channels);
  put(">", s.out_channels);
  put(" g", s.groups);
  for (size_t i = 0; i < static_cast<size_t>(s.axes); ++i) {
    put(" [", s.input[i]);
    put(">", s.output[i]);
    put(" k", s.kernel[i]);
    put(" s", s.stride[i]);
    put(" d", s.dilation[i]);
    put(" p", s.pad_begin[i]);
    all += "]";
  }
  return all;
}

std::optional<ConvShape> parsed(const char* line) {
  ConvShape s;
  char kind = 0;
  int read = 0;
  if (std::sscanf(line, "%c n%ld %ld>%ld g%ld%n", &kind, &s.batch, &s.in_channels, &s.out_channels, &s.groups, &read) !=
      5) {
    return std::nullopt;
  }
  s.transposed = kind == 'T';
  s.axes = 0;
  for (const char* at = line + read; s.axes < kMaxSpatialAxes; at += read) {
    const auto i = static_cast<size_t>(s.axes);
    if (std::sscanf(at, " [%ld>%ld k%ld s%ld d%ld p%ld]%n", &s.input[i], &s.output[i], &s.kernel[i], &s.stride[i],
                    &s.dilation[i], &s.pad_begin[i], &read) != 6) {
      break;
    }
    ++s.axes;
  }
  return s;
}

}  // namespace treadle::kernels

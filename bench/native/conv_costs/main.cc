// Times every method of convolution on every shape that it fits, beside what its row counts (kernels/conv_costs.h).
// bench_costs.py fits the prices of the counts to the times. A line of the output:
//
//   avx2 nchw C n1 16>32 g1 [20>20 k3 s1 d1 p1] [25>25 k3 s1 d1 p1] | direct | direct 1 70210 3,0,14.5 | ...
//
// The instruction set, the layout, the shape, the method that is chosen, and of each method the order of its sums, its
// nanoseconds and its counts.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/conv.h"
#include "kernels/conv_costs.h"
#include "kernels/dispatch.h"

namespace treadle::kernels {
namespace {

std::mt19937 random_numbers(77);

int64_t pick(std::initializer_list<int64_t> values) {
  return values.begin()[random_numbers() % values.size()];
}

int64_t product(const Spatial& sizes, int axes) {
  int64_t count = 1;
  for (int i = 0; i < axes; ++i) count *= sizes[static_cast<size_t>(i)];
  return count;
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

// Shapes as networks over images, speech and other signals have them.
std::vector<ConvShape> shapes(int rounds) {
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

using Bytes = std::unique_ptr<void, decltype(&std::free)>;
Bytes aligned(size_t bytes) {
  return {std::aligned_alloc(64, (bytes / 64 + 2) * 64), &std::free};
}

double now_ns() {
  using std::chrono::steady_clock;
  return std::chrono::duration<double, std::nano>(steady_clock::now().time_since_epoch()).count();
}

// A prepared convolution and the shortest time that a run of it took.
class Timed {
 public:
  Timed(const ConvPlan& plan, const float* weights)
      : plan_(plan),
        packed_(aligned(plan.packed_weight_bytes)),
        scratch_(aligned(plan.scratch_bytes)),
        table_(aligned(plan.table_bytes)) {
    pack_conv_weights(plan_, weights, packed_.get());
    make_conv_table(plan_, table_.get());
  }
  const ConvPlan& plan() const { return plan_; }
  double ns() const { return ns_; }

  void run(const float* x, const float* bias, float* y) {
    constexpr double kRoundNs = 2e5, kSampleNs = 5e3;
    for (double spent = 0; spent < kRoundNs;) {
      const double begin = now_ns();
      for (int i = 0; i < repeats_; ++i) {
        run_conv(plan_, {x, packed_.get(), bias, y, scratch_.get(), nullptr, table_.get()});
      }
      const double taken = now_ns() - begin;
      spent += taken;
      if (taken < kSampleNs) {
        repeats_ *= 2;
      } else {
        ns_ = std::min(ns_, taken / repeats_);
      }
    }
  }

 private:
  ConvPlan plan_;
  Bytes packed_, scratch_, table_;
  int repeats_ = 1;
  double ns_ = 1e18;
};

bool has_last(const ConvShape& s) {
  const ConvLayouts layouts = conv_layouts(ComputeType::kF32, s);
  return layouts.x && layouts.y;
}

void time_methods(const char* isa, ConvShape s, bool last, int rounds) {
  if (last && !has_last(s)) return;
  s.x_last = s.y_last = last;
  const auto size = [](int64_t count) { return static_cast<size_t>(count); };
  std::vector<float> x(size(s.batch * s.in_channels * product(s.input, s.axes)), 0.5f),
      w(size(s.in_channels * s.out_channels / s.groups * product(s.kernel, s.axes)), 0.25f), bias(size(s.out_channels)),
      y(size(s.batch * s.out_channels * product(s.output, s.axes)));
  std::vector<Timed> methods;
  for (const std::string_view name : conv_methods()) {
    const ScopedConvMethod wanted(name);
    if (last && !has_last(s)) continue;
    const ConvPlan plan = prepare_conv(ComputeType::kF32, s);
    if (plan.method == name) methods.emplace_back(plan, w.data());
  }
  double least = 1e18;
  for (int round = 0; round < rounds; ++round) {
    for (Timed& m : methods) {
      constexpr double kHopeless = 5;
      if (round > 2 && m.ns() > kHopeless * least) continue;  // the first runs find cold caches
      m.run(x.data(), bias.data(), y.data());
      least = std::min(least, m.ns());
    }
  }
  std::printf("%s %s %s | %s", isa, last ? "nhwc" : "nchw", text(s).c_str(),
              std::string(prepare_conv(ComputeType::kF32, s).method).c_str());
  const std::vector<ConvCost> costs = conv_costs(ComputeType::kF32, s);
  for (const Timed& m : methods) {
    const auto cost =
        std::find_if(costs.begin(), costs.end(), [&](const ConvCost& c) { return c.method == m.plan().method; });
    if (cost == costs.end()) continue;
    std::printf(" | %s %d %.1f", std::string(cost->method).c_str(), cost->order, m.ns());
    char separator = ' ';
    for (const double count : cost->counts) {
      std::printf("%c%.9g", separator, count);
      separator = ',';
    }
  }
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace
}  // namespace treadle::kernels

// Arguments: how many shapes of a kind, how often the methods take turns at a shape.
int main(int count, char** arguments) {
  using namespace treadle;
  using namespace treadle::kernels;
  const int of_a_kind = count > 1 ? std::atoi(arguments[1]) : 100, rounds = count > 2 ? std::atoi(arguments[2]) : 8;
  const std::vector<ConvShape> all = shapes(of_a_kind);
  for (const Isa isa : usable_isas()) {
    const ScopedIsa scope(isa);
    const std::string isa_name(name(isa));
    for (const ConvShape& s : all) {
      for (const bool last : {false, true}) time_methods(isa_name.c_str(), s, last, rounds);
    }
  }
}

// Times every method of convolution on every shape that it fits, beside what its row counts (kernels/conv_costs.h).
// bench_costs.py fits the prices of the counts to the times. A line of the output:
//
//   avx2 nchw C n1 16>32 g1 [20>20 k3 s1 d1 p1] [25>25 k3 s1 d1 p1] | direct | direct 1 70210 3,0,14.5 | ...
//
// The instruction set, the layout (of input and result, if they differ), the shape, the method that is chosen, and of
// each method the order of its sums, its nanoseconds and its counts.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "kernels/conv.h"
#include "kernels/conv_costs.h"
#include "kernels/dispatch.h"
#include "shapes.h"

namespace treadle::kernels {
namespace {

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

struct LayoutOfBoth {
  const char* name;
  bool x_nhwc, y_nhwc;
};
constexpr LayoutOfBoth kLayouts[] = {
    {"nchw", false, false}, {"nhwc", true, true}, {"nchw-nhwc", false, true}, {"nhwc-nchw", true, false}};

bool is_allowed(const ConvShape& s, const LayoutOfBoth& layout) {
  const ConvLayouts allowed = conv_layouts(ComputeType::kF32, s);
  return (!layout.x_nhwc || allowed.x) && (!layout.y_nhwc || allowed.y) &&
         (layout.x_nhwc == layout.y_nhwc || allowed.apart);
}

void time_methods(const char* isa, ConvShape s, const LayoutOfBoth& layout, int rounds) {
  if (!is_allowed(s, layout)) return;
  s.x_nhwc = layout.x_nhwc, s.y_nhwc = layout.y_nhwc;
  const auto size = [](int64_t count) { return static_cast<size_t>(count); };
  std::vector<float> x(size(s.batch * s.in_channels * product(s.input, s.axes)), 0.5f),
      w(size(s.in_channels * s.out_channels / s.groups * product(s.kernel, s.axes)), 0.25f), bias(size(s.out_channels)),
      y(size(s.batch * s.out_channels * product(s.output, s.axes)));
  std::vector<Timed> methods;
  for (const std::string_view name : conv_methods()) {
    const ScopedConvMethod wanted(name);
    if (!is_allowed(s, layout)) continue;
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
  std::printf("%s %s %s | %s", isa, layout.name, text(s).c_str(),
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

// Arguments: a file of shapes of models, a line each (shapes.h); how many shapes of a kind are drawn beside them; how
// often the methods take turns at a shape.
int main(int count, char** arguments) {
  using namespace treadle;
  using namespace treadle::kernels;
  if (count < 2) return std::fprintf(stderr, "usage: treadle_conv_costs SHAPES [OF_A_KIND [ROUNDS]]\n"), 2;
  const int of_a_kind = count > 2 ? std::atoi(arguments[2]) : 100, rounds = count > 3 ? std::atoi(arguments[3]) : 8;
  std::vector<ConvShape> all;
  std::ifstream lines(arguments[1]);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::optional<ConvShape> shape = parsed(line.c_str());
    if (!shape) return std::fprintf(stderr, "%s: %s is no shape\n", arguments[1], line.c_str()), 2;
    all.push_back(*shape);
  }
  const std::vector<ConvShape> drawn = drawn_shapes(of_a_kind);
  all.insert(all.end(), drawn.begin(), drawn.end());
  for (const Isa isa : usable_isas()) {
    const ScopedIsa scope(isa);
    const std::string isa_name(name(isa));
    for (const ConvShape& s : all) {
      for (const LayoutOfBoth& layout : kLayouts) time_methods(isa_name.c_str(), s, layout, rounds);
    }
  }
}

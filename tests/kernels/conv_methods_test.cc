// Every method of convolution on every shape that it fits, in all layouts, against a plain loop; and that each is
// chosen somewhere.

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>

#include "kernels/conv.h"
#include "kernels/conv_costs.h"
#include "kernels/conv_reference.h"
#include "kernels/conv_shapes.h"
#include "kernels/fold.h"
#include "kernels/kernel_test_util.h"
#include "kernels/qgemm.h"

namespace treadle::kernels {
namespace {

class ConvMethodsTest : public EachIsa {
 protected:
  int64_t draw(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }
  int64_t pick(std::initializer_list<int64_t> values) {
    return values.begin()[draw(0, static_cast<int64_t>(values.size()) - 1)];
  }

  // Dense, grouped and depthwise convolutions of 1 to 3 axes; kernels of one tap are more frequent.
  ConvShape random_shape(bool transposed) {
    ConvShape s;
    s.axes = static_cast<int>(pick({1, 2, 2, 2, 3}));
    s.transposed = transposed;
    s.batch = pick({1, 1, 2});
    s.groups = pick({1, 1, 1, 2, 3});
    s.in_channels = s.groups * pick({1, 2, 3, 8, 20, 32});
    s.out_channels = s.groups * pick({1, 2, 5, 8, 16, 24, 32, 33});
    const bool depthwise = pick({0, 0, 1}) == 1, single = !depthwise && pick({0, 0, 1}) == 1;
    if (depthwise) s.groups = s.in_channels = s.out_channels = pick({1, 3, 8, 16, 21, 40});
    for (size_t i = 0; i < static_cast<size_t>(s.axes); ++i) {
      s.kernel[i] = single ? 1 : depthwise ? pick({3, 3, 5, 7, 4}) : pick({1, 2, 3, 3, 5, 7});
      s.stride[i] = depthwise ? pick({1, 1, 2, 2, 3}) : pick({1, 1, 1, 2, 3, 9});
      s.dilation[i] = single ? 1 : pick({1, 1, 1, 2});
      s.pad_begin[i] = single      ? 0
                       : depthwise ? (s.kernel[i] - 1) * s.dilation[i] / 2
                                   : pick({0, s.kernel[i] / 2, 1, -1});
      s.input[i] = draw(1, s.axes == 1 ? 200 : s.axes == 2 ? 24 : 7);
      s.output[i] = extent(s, i);
    }
    return s;
  }
  int64_t extent(const ConvShape& s, size_t i) {
    const int64_t reach = (s.kernel[i] - 1) * s.dilation[i] + 1;
    if (s.transposed)
      return std::max<int64_t>(0, (s.input[i] - 1) * s.stride[i] + reach - s.pad_begin[i] + draw(-1, 1));
    const int64_t room = s.input[i] + 2 * std::max<int64_t>(s.pad_begin[i], 0) - reach;
    return room < 0 ? 0 : room / s.stride[i] + 1;
  }

  // `channels` planes of `plane` elements in each image, one element of all channels behind the other, or back.
  template <class T>
  static std::vector<T> with_channels_last(const std::vector<T>& from, int64_t channels, int64_t plane, bool back) {
    std::vector<T> to(from.size());
    const int64_t image = std::max<int64_t>(channels * plane, 1);
    for (int64_t at = 0; at < static_cast<int64_t>(from.size()); ++at) {
      const int64_t first = at / image * image, channel = at % image / std::max<int64_t>(plane, 1),
                    position = at % plane;
      const auto last = static_cast<size_t>(first + position * channels + channel), second = static_cast<size_t>(at);
      to[back ? second : last] = from[back ? last : second];
    }
    return to;
  }

  // Whether the wanted method computes the shape in these layouts.
  template <class T>
  bool check(const ConvShape& s, std::string_view method) {
    const ComputeType type = std::is_same_v<T, float> ? ComputeType::kF32 : ComputeType::kF64;
    if (s.x_nhwc || s.y_nhwc) {
      const ConvLayouts layouts = conv_layouts(type, s);
      if ((s.x_nhwc && !layouts.x) || (s.y_nhwc && !layouts.y) || (s.x_nhwc != s.y_nhwc && !layouts.apart))
        return false;
    }
    const ConvPlan plan = prepare_conv(type, s);
    if (plan.method != method) return false;
    const int64_t in = channel_size(s), out = product(s.output, s.axes);
    const auto x = random_values<T>(random_, static_cast<size_t>(s.batch * s.in_channels * in));
    const auto w = random_values<T>(random_, static_cast<size_t>(weight_size(s)));
    const auto bias = random_values<T>(random_, static_cast<size_t>(s.out_channels));
    const auto want = reference(s, x, w, bias.data());
    const auto given = s.x_nhwc ? with_channels_last(x, s.in_channels, in, false) : x;
    Scratch scratch(plan.scratch_bytes), packed(plan.packed_weight_bytes), table(plan.table_bytes);
    Scratch y(want.size() * sizeof(T));
    pack_conv_weights(plan, w.data(), packed.get());
    make_conv_table(plan, table.get());
    for (int64_t unit = plan.units - 1; unit >= 0; --unit) {
      run_conv_range(plan, {given.data(), packed.get(), bias.data(), y.get(), scratch.get(), nullptr, table.get()},
                     unit, unit + 1);
    }
    std::vector<T> found(y.as<T>(), y.as<T>() + want.size());
    if (s.y_nhwc) found = with_channels_last(found, s.out_channels, out, true);
    const double k = static_cast<double>(s.in_channels / s.groups * product(s.kernel, s.axes));
    for (size_t i = 0; i < want.size(); ++i) {
      if (!(std::abs(static_cast<double>(found[i]) - static_cast<double>(want[i])) <=
            static_cast<double>(std::numeric_limits<T>::epsilon()) * (k + 8))) {
        ADD_FAILURE() << method << (s.x_nhwc ? " x last" : "") << (s.y_nhwc ? " y last" : "") << ": " << describe(s)
                      << " at " << i << ": " << found[i] << " instead of " << want[i];
        break;
      }
    }
    return true;
  }

  bool check_bytes(const QConvShape& q, std::string_view method) {
    const ConvShape& s = q.conv;
    const QConvPlan plan = prepare_qconv(q);
    if (plan.method != method) return false;
    const auto x = random_values<uint8_t>(random_, static_cast<size_t>(s.batch * s.in_channels * channel_size(s)));
    const auto w = random_values<uint8_t>(random_, static_cast<size_t>(weight_size(s)));
    const auto w_zero = random_values<uint8_t>(random_, static_cast<size_t>(s.out_channels));
    const uint8_t x_zero = static_cast<uint8_t>(draw(0, 255));
    const auto value = [](uint8_t byte, bool is_signed) {
      return static_cast<double>(is_signed ? static_cast<int8_t>(byte) : byte);
    };
    std::vector<double> centred_x, centred_w;
    for (const uint8_t byte : x) centred_x.push_back(value(byte, q.x_signed) - value(x_zero, q.x_signed));
    const size_t filter = w.size() / static_cast<size_t>(s.out_channels);
    for (size_t i = 0; i < w.size(); ++i) {
      const uint8_t zero = w_zero[q.w_zero_per_channel ? i / filter : 0];
      centred_w.push_back(value(w[i], q.w_signed) - value(zero, q.w_signed));
    }
    const auto want = reference<double>(s, centred_x, centred_w, nullptr);
    Scratch scratch(plan.scratch_bytes), packed(plan.packed_weight_bytes);
    std::vector<int32_t> y(want.size());
    pack_qconv_weights(plan, w.data(), packed.get());
    run_qconv(plan, {x.data(), packed.get(), &x_zero, w_zero.data(), y.data(), scratch.get()}, {});
    for (size_t i = 0; i < want.size(); ++i) {
      if (y[i] != static_cast<int32_t>(want[i])) {
        ADD_FAILURE() << method << ": " << describe(s) << " at " << i << ": " << y[i] << " instead of " << want[i];
        break;
      }
    }
    return true;
  }
};

TEST_P(ConvMethodsTest, EachComputesWhatItFitsInEveryLayout) {
  std::map<std::string_view, int> checked;
  for (int round = 0; round < 300; ++round) {
    ConvShape s = random_shape(round % 4 == 3);
    QConvShape q;
    q.conv = s;
    q.x_signed = round & 1, q.w_signed = round & 2, q.w_zero_per_channel = round & 4;
    for (const std::string_view method : conv_methods()) {
      const ScopedConvMethod wanted(method);
      for (int layout = 0; layout < 4; ++layout) {
        s.x_nhwc = (layout & 1) != 0, s.y_nhwc = (layout & 2) != 0;
        checked[method] += check<float>(s, method);
        if (layout == 0) checked[method] += check<double>(s, method);
      }
      if (!s.transposed) checked[method] += check_bytes(q, method);
    }
  }
  for (const std::string_view method : conv_methods()) {
    if (method == kFoldedMethod) continue;  // the weights decide: conv_folded_test.cc
    EXPECT_GE(checked[method], 10) << method;
  }
}

TEST_P(ConvMethodsTest, LayoutsOfOneShapeGiveTheSameBits) {
  int compared = 0;
  for (int round = 0; round < 150; ++round) {
    const ConvShape s = random_shape(false);
    const ConvLayouts layouts = conv_layouts(ComputeType::kF32, s);
    const int64_t in = channel_size(s), out = product(s.output, s.axes);
    const auto x = random_values<float>(random_, static_cast<size_t>(s.batch * s.in_channels * in));
    const auto w = random_values<float>(random_, static_cast<size_t>(weight_size(s)));
    const auto run = [&](bool x_nhwc, bool y_nhwc) {
      ConvShape laid = s;
      laid.x_nhwc = x_nhwc, laid.y_nhwc = y_nhwc;
      const ConvPlan plan = prepare_conv(ComputeType::kF32, laid);
      const auto given = x_nhwc ? with_channels_last(x, s.in_channels, in, false) : x;
      std::vector<float> y(static_cast<size_t>(s.batch * s.out_channels * out));
      Scratch scratch(plan.scratch_bytes), packed(plan.packed_weight_bytes), table(plan.table_bytes);
      pack_conv_weights(plan, w.data(), packed.get());
      make_conv_table(plan, table.get());
      run_conv(plan, {given.data(), packed.get(), nullptr, y.data(), scratch.get(), nullptr, table.get()});
      return y_nhwc ? with_channels_last(y, s.out_channels, out, true) : y;
    };
    const auto plain = run(false, false);
    for (const auto& [x_nhwc, y_nhwc] : {std::pair{true, true}, {true, false}, {false, true}}) {
      if ((x_nhwc && !layouts.x) || (y_nhwc && !layouts.y) || (x_nhwc != y_nhwc && !layouts.apart)) continue;
      EXPECT_EQ(0, std::memcmp(run(x_nhwc, y_nhwc).data(), plain.data(), plain.size() * sizeof(float))) << describe(s);
      ++compared;
    }
  }
  EXPECT_GE(compared, 30);
}

TEST_P(ConvMethodsTest, EachIsChosenSomewhere) {
  std::set<std::string_view> chosen;
  const ConvShape deep = square_conv(8000, 64, 3, 1, 5);  // tiles of bytes take fewer steps
  chosen.insert(prepare_qconv({.conv = deep}).method);
  for (int round = 0; round < 2000; ++round) {
    ConvShape s = random_shape(round % 8 == 7);
    if (product(s.output, s.axes) == 0) continue;
    if (!s.transposed) chosen.insert(prepare_qconv({.conv = s}).method);
    const ConvLayouts layouts = conv_layouts(ComputeType::kF32, s);
    chosen.insert(prepare_conv(ComputeType::kF32, s).method);
    chosen.insert(prepare_conv(ComputeType::kF64, s).method);
    if (!layouts.x || !layouts.y) continue;
    s.x_nhwc = s.y_nhwc = true;
    chosen.insert(prepare_conv(ComputeType::kF32, s).method);
  }
  for (const std::string_view method : conv_methods()) {
    EXPECT_TRUE(chosen.contains(method) || method == kFoldedMethod) << method;
  }
}

TEST_P(ConvMethodsTest, CostsFollowTheWork) {
  for (int round = 0; round < 300; ++round) {
    ConvShape s = random_shape(round % 4 == 3);
    if (product(s.output, s.axes) == 0) continue;
    s.batch = 1;
    const std::vector<ConvCost> single = conv_costs(ComputeType::kF32, s);
    ConvShape more = s;
    more.batch = 4;
    const std::vector<ConvCost> several = conv_costs(ComputeType::kF32, more);
    ASSERT_EQ(single.size(), several.size()) << describe(s);
    for (size_t i = 0; i < single.size(); ++i) {
      const auto is_count = [](double n) { return n >= 0 && n < 1e15; };
      EXPECT_TRUE(std::all_of(single[i].counts.begin(), single[i].counts.end(), is_count)) << single[i].method;
      EXPECT_GT(single[i].ns, 0) << single[i].method << ": " << describe(s);
      EXPECT_GT(several[i].ns, single[i].ns) << single[i].method << ": " << describe(s);
    }
    const std::string_view chosen = prepare_conv(ComputeType::kF32, s).method;
    EXPECT_TRUE(std::any_of(single.begin(), single.end(), [&](const ConvCost& c) { return c.method == chosen; }));
  }
}

// The layout of a model follows from these costs (opt/channels_last.cc).
TEST_P(ConvMethodsTest, LayoutsCostWhatTheirMethodsDo) {
  int compared = 0;
  for (int round = 0; round < 300; ++round) {
    ConvShape s = random_shape(round % 4 == 3);
    if (product(s.output, s.axes) == 0) continue;
    const ConvLayouts layouts = conv_layouts(ComputeType::kF32, s);
    const auto cost_of_choice = [&](bool x_nhwc, bool y_nhwc) {
      s.x_nhwc = x_nhwc, s.y_nhwc = y_nhwc;
      const ConvPlan plan = prepare_conv(ComputeType::kF32, s);
      for (const ConvCost& cost : conv_costs(ComputeType::kF32, plan.shape)) {
        if (cost.method == plan.method) return cost.ns;
      }
      return -1.0;
    };
    if (layouts.x && layouts.y) {
      EXPECT_EQ(layouts.nchw_ns, cost_of_choice(false, false)) << describe(s);
      EXPECT_EQ(layouts.both_ns, cost_of_choice(true, true)) << describe(s);
      ++compared;
    }
    if (layouts.x && layouts.apart) EXPECT_EQ(layouts.x_ns, cost_of_choice(true, false)) << describe(s);
    if (layouts.y && layouts.apart) EXPECT_EQ(layouts.y_ns, cost_of_choice(false, true)) << describe(s);
  }
  EXPECT_GE(compared, 30);
}

TEST_P(ConvMethodsTest, TheCheapestIsChosen) {
  int different = 0;
  for (int round = 0; round < 300; ++round) {
    const ConvShape s = random_shape(round % 4 == 3);
    if (product(s.output, s.axes) == 0) continue;
    const std::vector<ConvCost> costs = conv_costs(ComputeType::kF64, s);  // of one layout
    const auto least =
        std::min_element(costs.begin(), costs.end(), [](const ConvCost& a, const ConvCost& b) { return a.ns < b.ns; });
    EXPECT_EQ(prepare_conv(ComputeType::kF64, s).method, least->method) << describe(s);
    different += costs.size() > 1;
  }
  EXPECT_GE(different, 100);
}

TREADLE_EACH_ISA(ConvMethodsTest);

}  // namespace
}  // namespace treadle::kernels

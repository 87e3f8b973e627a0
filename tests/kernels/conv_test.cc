#include "kernels/conv.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "kernels/conv_reference.h"
#include "kernels/kernel_test_util.h"

namespace treadle::kernels {
namespace {

struct Case {
  std::string name;
  ConvShape shape;
};

class ConvTest : public EachIsa {
 protected:
  template <class T>
  void check(const ConvShape& s, Clamp clamp = {-INFINITY, INFINITY}, bool adds = false) {
    const auto x = random_values<T>(random_, static_cast<size_t>(s.batch * s.in_channels * channel_size(s)));
    const auto w = random_values<T>(random_, static_cast<size_t>(weight_size(s)));
    const auto bias = random_values<T>(random_, static_cast<size_t>(s.out_channels));
    for (const T* b : {static_cast<const T*>(nullptr), bias.data()}) {
      auto want = reference(s, x, w, b);
      const auto addend = random_values<T>(random_, adds ? want.size() : 0);
      for (size_t i = 0; i < addend.size(); ++i) want[i] += addend[i];
      for (T& value : want) value = std::min(std::max(value, static_cast<T>(clamp.low)), static_cast<T>(clamp.high));
      ConvPlan plan = prepare_conv(std::is_same_v<T, float> ? ComputeType::kF32 : ComputeType::kF64, s);
      plan.clamp = clamp;
      Scratch scratch(plan.scratch_bytes), packed(plan.packed_weight_bytes), table(plan.table_bytes);
      Scratch y(want.size() * sizeof(T)), y_parts(want.size() * sizeof(T));
      pack_conv_weights(plan, w.data(), packed.get());
      make_conv_table(plan, table.get());
      const T* added = adds ? addend.data() : nullptr;
      run_conv(plan, {x.data(), packed.get(), b, y.get(), scratch.get(), added, table.get()});
      const std::string what = describe(s);
      const double k = static_cast<double>(s.in_channels / s.groups * product(s.kernel, s.axes));
      for (size_t i = 0; i < want.size(); ++i) {
        ASSERT_NEAR(y.as<T>()[i], want[i], std::numeric_limits<T>::epsilon() * (k + 8)) << what << " at " << i;
      }
      for (int64_t unit = plan.units - 1; unit >= 0; --unit) {
        run_conv_range(plan, {x.data(), packed.get(), b, y_parts.get(), scratch.get(), added, table.get()}, unit,
                       unit + 1);
      }
      ASSERT_EQ(0, std::memcmp(y.get(), y_parts.get(), want.size() * sizeof(T))) << what << " in parts";
    }
  }

  int64_t draw(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }
  int64_t pick(std::initializer_list<int64_t> values) {
    return values.begin()[draw(0, static_cast<int64_t>(values.size()) - 1)];
  }

  // Output sizes follow from randomly drawn attributes; padding at the end is drawn too.
  ConvShape random_shape(int axes, bool transposed) {
    ConvShape s;
    s.axes = axes;
    s.transposed = transposed;
    s.batch = pick({1, 1, 2});
    s.groups = pick({1, 1, 1, 2, 3, 8});
    s.in_channels = s.groups * pick({1, 1, 2, 3, 5, 16});
    s.out_channels = s.groups * pick({1, 1, 2, 3, 4, 7, 13, 30});
    for (int i = 0; i < axes; ++i) {
      const auto d = static_cast<size_t>(i);
      const int64_t largest = axes == 1 ? 300 : axes == 2 ? 30 : 7;
      s.kernel[d] = pick({1, 1, 2, 3, 3, 5});
      s.stride[d] = pick({1, 1, 1, 2, 3, 7});
      s.dilation[d] = pick({1, 1, 1, 2, 3});
      s.pad_begin[d] = pick({0, 0, 1, 2, 4, -1});
      const int64_t reach = (s.kernel[d] - 1) * s.dilation[d] + 1;
      if (transposed) {
        s.input[d] = draw(1, largest / 3);
        s.output[d] = std::max<int64_t>(0, (s.input[d] - 1) * s.stride[d] + reach - s.pad_begin[d] + draw(-2, 2));
      } else {
        s.input[d] = draw(1, largest);
        const int64_t room = s.input[d] + s.pad_begin[d] + draw(0, 3) - reach;
        s.output[d] = room < 0 ? 0 : room / s.stride[d] + 1;
      }
    }
    return s;
  }
};

ConvShape conv2d(int64_t in_channels, int64_t out_channels, int64_t groups, int64_t size, int64_t kernel,
                 int64_t stride, int64_t pad) {
  ConvShape s;
  s.in_channels = in_channels, s.out_channels = out_channels, s.groups = groups;
  for (size_t i = 0; i < 2; ++i) {
    s.input[i] = size, s.kernel[i] = kernel, s.stride[i] = stride, s.pad_begin[i] = pad;
    s.output[i] = (size + 2 * pad - kernel) / stride + 1;
  }
  return s;
}

TEST_P(ConvTest, RandomShapes) {
  for (int round = 0; round < 150; ++round) {
    for (int axes : {1, 2, 3}) check<float>(random_shape(axes, false));
  }
}

TEST_P(ConvTest, RandomTransposedShapes) {
  for (int round = 0; round < 100; ++round) {
    for (int axes : {1, 2, 3}) check<float>(random_shape(axes, true));
  }
}

TEST_P(ConvTest, Depthwise) {
  for (int round = 0; round < 200; ++round) {
    ConvShape s;
    s.axes = static_cast<int>(pick({1, 2, 2, 2}));
    s.groups = s.in_channels = s.out_channels = draw(1, 4);
    for (int i = 0; i < s.axes; ++i) {
      const auto d = static_cast<size_t>(i);
      s.input[d] = draw(1, i == s.axes - 1 ? 120 : 20);
      s.kernel[d] = pick({1, 3, 3, 5, 7, 4});
      s.stride[d] = pick({1, 1, 2, 3});
      s.dilation[d] = pick({1, 1, 2});
      s.pad_begin[d] = (s.kernel[d] - 1) * s.dilation[d] / 2;
      const bool keeps_size = draw(0, 1) != 0;
      if (keeps_size) s.stride[d] = 1;
      const int64_t room = s.input[d] + 2 * s.pad_begin[d] - (s.kernel[d] - 1) * s.dilation[d] - 1;
      s.output[d] = keeps_size ? s.input[d] : room < 0 ? 0 : room / s.stride[d] + 1;
    }
    const Clamp clamp = round % 2 != 0 ? Clamp{0, 0.25f} : Clamp{-INFINITY, INFINITY};
    check<float>(s, clamp);
    if (round % 4 == 0) check<double>(s, clamp);
  }
}

TEST_P(ConvTest, Double) {
  for (int round = 0; round < 30; ++round) {
    check<double>(random_shape(2, false));
    check<double>(random_shape(2, true));
  }
}

TEST_P(ConvTest, FiveAxes) {
  ConvShape s = conv2d(3, 4, 1, 3, 2, 1, 1);
  s.axes = 5;
  for (size_t i = 2; i < 5; ++i) s.input[i] = 3, s.output[i] = 4, s.kernel[i] = 2, s.pad_begin[i] = 1;
  check<float>(s);
}

TEST_P(ConvTest, ShapesOfRealModels) {
  check<float>(conv2d(3, 16, 1, 64, 3, 2, 1));
  check<float>(conv2d(48, 48, 48, 40, 3, 2, 1));
  check<float>(conv2d(24, 24, 24, 20, 5, 1, 2));
  check<float>(conv2d(16, 48, 1, 30, 1, 1, 0));
  check<float>(conv2d(96, 24, 1, 1, 1, 1, 0));
  check<float>(conv2d(64, 64, 1, 16, 3, 1, 1));
  check<float>(conv2d(3, 32, 1, 64, 7, 2, 3));
  ConvShape s;
  s.axes = 1, s.in_channels = 1, s.out_channels = 40;
  s.input[0] = 1100, s.kernel[0] = 256, s.stride[0] = 128, s.output[0] = 7;
  check<float>(s);
  s.out_channels = 1, s.stride[0] = 2, s.output[0] = 423;
  check<float>(s);
  s.in_channels = 60, s.out_channels = 30, s.input[0] = 5000, s.kernel[0] = 3, s.stride[0] = 1, s.output[0] = 4998;
  check<float>(s);
}

TEST_P(ConvTest, ClampIsAppliedAfterTheBias) {
  for (int axes : {1, 2}) {
    for (int round = 0; round < 20; ++round) {
      check<float>(random_shape(axes, false), {0, 0.5f});
      check<float>(random_shape(axes, true), {-0.25f, INFINITY});
    }
  }
  check<float>(conv2d(16, 48, 1, 30, 1, 1, 0), {0, 6});
}

TEST_P(ConvTest, AddsBeforeItClamps) {
  for (int axes : {1, 2, 3}) {
    for (int round = 0; round < 25; ++round) {
      check<float>(random_shape(axes, false), {0, INFINITY}, true);
      check<double>(random_shape(axes, false), {-0.5f, 0.5f}, true);
      check<float>(random_shape(axes, true), {-INFINITY, INFINITY}, true);
    }
  }
  check<float>(conv2d(16, 48, 1, 30, 1, 1, 0), {0, INFINITY}, true);
  check<float>(conv2d(8, 8, 8, 40, 3, 1, 1), {0, INFINITY}, true);
  check<float>(conv2d(8, 8, 8, 40, 5, 2, 2), {0, INFINITY}, true);
}

TEST_P(ConvTest, WideImagesInBandsOfColumns) {
  check<float>(conv2d(64, 13, 1, 150, 3, 1, 1), {0, INFINITY}, true);
  check<float>(conv2d(48, 5, 1, 131, 5, 1, 2));
  check<float>(conv2d(64, 12, 1, 140, 3, 2, 1));
  check<float>(conv2d(32, 16, 1, 121, 3, 1, 1), {0, INFINITY}, true);  // output channels in lanes
  check<float>(conv2d(16, 32, 1, 230, 3, 2, 1));
}

TEST_P(ConvTest, NotANumberStaysWhereItIsRead) {
  for (int64_t pad : {0, 1}) {
    const ConvShape s = conv2d(2, 3, 1, 12, 3, 1, pad);
    std::vector<float> x(static_cast<size_t>(2 * 12 * 12), 1.f), w(static_cast<size_t>(weight_size(s)), 1.f);
    x[5 * 12 + 5] = NAN;
    ConvPlan plan = prepare_conv(ComputeType::kF32, s);
    plan.clamp = {0, INFINITY};
    Scratch scratch(plan.scratch_bytes), packed(plan.packed_weight_bytes), table(plan.table_bytes);
    std::vector<float> y(static_cast<size_t>(3 * s.output[0] * s.output[1]));
    pack_conv_weights(plan, w.data(), packed.get());
    make_conv_table(plan, table.get());
    run_conv(plan, {x.data(), packed.get(), nullptr, y.data(), scratch.get(), nullptr, table.get()});
    int64_t nans = 0;
    for (float value : y) nans += std::isnan(value);
    EXPECT_EQ(nans, 3 * 9);
  }
}

// Weights are packed once for inputs of any size.
TEST_P(ConvTest, PlansOfOnePackingPackAlike) {
  // The packing is empty if the plan leaves out taps: the kept ones are a part of the key of packed weights.
  const auto packed_for = [&](const ConvShape& s, const std::vector<float>& w, std::string_view* packing) {
    const ConvPlan plan = prepare_conv(ComputeType::kF32, s);
    *packing = plan.cuts ? std::string_view() : plan.packing;
    Scratch packed(plan.packed_weight_bytes);
    pack_conv_weights(plan, w.data(), packed.get());
    return std::vector<char>(packed.as<char>(), packed.as<char>() + plan.packed_weight_bytes);
  };
  int same = 0;
  for (const auto& [in, out, groups, kernel] :
       {std::array<int64_t, 4>{6, 20, 1, 3}, {32, 32, 32, 3}, {32, 32, 32, 5}, {8, 33, 1, 1}, {12, 9, 3, 3}}) {
    std::string_view first;
    const ConvShape small = conv2d(in, out, groups, 9, kernel, 1, kernel / 2);
    const auto w = random_values<float>(random_, static_cast<size_t>(weight_size(small)));
    const auto expected = packed_for(small, w, &first);
    for (const int64_t size : {1, 4, 7, 13, 30, 70}) {
      for (const int64_t stride : {1, 2}) {
        std::string_view packing;
        const auto found = packed_for(conv2d(in, out, groups, size, kernel, stride, kernel / 2), w, &packing);
        if (packing != first) continue;
        EXPECT_EQ(found, expected) << "channels " << in << "->" << out << " kernel " << kernel << " size " << size;
        ++same;
      }
    }
  }
  EXPECT_GT(same, 20);
}

TREADLE_EACH_ISA(ConvTest);

}  // namespace
}  // namespace treadle::kernels

// The fused steps give the results of the elementwise rows, up to rounding, on every instruction set, and of the
// equations.
#include "kernels/recurrent.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/dispatch.h"

namespace treadle::kernels {
namespace {

template <class T>
struct Steps {
  static constexpr ComputeType kType = sizeof(T) == 8 ? ComputeType::kF64 : ComputeType::kF32;
  using Values = std::vector<T>;

  explicit Steps(size_t hidden) : n(hidden) {
    std::mt19937 random(static_cast<unsigned>(hidden));
    std::uniform_real_distribution<T> draw(-4, 4);
    for (Values* v : {&x, &u, &c, &h, &z}) {
      v->resize(4 * n);
      for (T& e : *v) e = draw(random);
    }
  }

  Values part(const Values& v, size_t k) const { return Values(v.begin() + k * n, v.begin() + (k + 1) * n); }
  Values unary(ElementwiseOp op, const Values& a) const {
    Values out(a.size());
    elementwise_rows(op, kType).vv(a.data(), nullptr, out.data(), a.size(), nullptr);
    return out;
  }
  Values binary(ElementwiseOp op, const Values& a, const Values& b) const {
    Values out(a.size());
    elementwise_rows(op, kType).vv(a.data(), b.data(), out.data(), a.size(), nullptr);
    return out;
  }
  Values sigmoid(const Values& a) const { return unary(ElementwiseOp::kSigmoid, a); }
  Values tanh(const Values& a) const { return unary(ElementwiseOp::kTanh, a); }
  Values mul(const Values& a, const Values& b) const { return binary(ElementwiseOp::kMul, a, b); }
  Values add(const Values& a, const Values& b) const { return binary(ElementwiseOp::kAdd, a, b); }
  Values blend(const Values& gate, const Values& candidate, const Values& old) const {
    const Values rest = binary(ElementwiseOp::kSub, Values(n, T(1)), gate);
    return add(mul(rest, candidate), mul(gate, old));
  }

  size_t n;
  Values x, u, c, h, z;
};

// Values up to 5: some units in the last place of 1.
template <class T>
void expect_near(const std::vector<T>& found, const std::vector<T>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], 8 * std::numeric_limits<T>::epsilon()) << "element " << i;
  }
}

template <class T>
void expect_fused_follows_rows(size_t hidden) {
  const Steps<T> s(hidden);
  using Values = typename Steps<T>::Values;
  const RecurrentRows& fused = recurrent_rows(Steps<T>::kType);
  const Values h = s.part(s.h, 0), c = s.part(s.c, 0), z = s.part(s.z, 0);
  Values a(hidden), b(hidden);

  fused.lstm(s.x.data(), c.data(), a.data(), b.data(), hidden);
  const Values cell =
      s.add(s.mul(s.sigmoid(s.part(s.x, 2)), c), s.mul(s.sigmoid(s.part(s.x, 0)), s.tanh(s.part(s.x, 3))));
  expect_near(b, cell);
  expect_near(a, s.mul(s.sigmoid(s.part(s.x, 1)), s.tanh(cell)));

  fused.gru(s.x.data(), s.u.data(), h.data(), a.data(), hidden);
  const Values gate = s.sigmoid(s.add(s.part(s.x, 0), s.part(s.u, 0)));
  const Values reset = s.sigmoid(s.add(s.part(s.x, 1), s.part(s.u, 1)));
  expect_near(a, s.blend(gate, s.tanh(s.add(s.mul(reset, s.part(s.u, 2)), s.part(s.x, 2))), h));

  fused.gru_gates(s.x.data(), h.data(), a.data(), b.data(), hidden);
  expect_near(a, s.sigmoid(s.part(s.x, 0)));
  expect_near(b, s.mul(s.sigmoid(s.part(s.x, 1)), h));

  fused.gru_update(s.x.data(), z.data(), h.data(), a.data(), hidden);
  expect_near(a, s.blend(z, s.tanh(s.part(s.x, 0)), h));
}

TEST(RecurrentRows, FollowTheElementwiseRows) {
  for (const Isa isa : usable_isas()) {
    const ScopedIsa scope(isa);
    for (size_t hidden : {0, 1, 3, 4, 7, 8, 15, 16, 17, 33, 64, 100, 255, 256, 300}) {
      SCOPED_TRACE(testing::Message() << "instruction set " << name(isa) << ", hidden " << hidden);
      expect_fused_follows_rows<float>(hidden);
      expect_fused_follows_rows<double>(hidden);
    }
  }
}

// Row k of `blocks` blocks of n elements, one element of each.
std::vector<float> lane_of(const std::vector<float>& row, size_t blocks, size_t n, size_t lane) {
  std::vector<float> lanes;
  for (size_t k = 0; k < blocks; ++k) lanes.push_back(row[k * n + lane]);
  return lanes;
}

TEST(RecurrentRows, ALaneDependsOnNothingElse) {
  for (const Isa isa : usable_isas()) {
    const ScopedIsa scope(isa);
    const RecurrentRows& rows = recurrent_rows(ComputeType::kF32);
    for (const size_t n : {19, 300}) {
      const Steps<float> s(n);
      std::vector<float> h(n), c(n), gru(n);
      rows.lstm(s.x.data(), s.c.data(), h.data(), c.data(), n);
      rows.gru(s.x.data(), s.u.data(), s.h.data(), gru.data(), n);
      for (size_t lane = 0; lane < n; ++lane) {
        float one_h = 0, one_c = 0, one_gru = 0;
        const std::vector<float> x = lane_of(s.x, 4, n, lane), u = lane_of(s.u, 4, n, lane);
        rows.lstm(x.data(), &s.c[lane], &one_h, &one_c, 1);
        rows.gru(x.data(), u.data(), &s.h[lane], &one_gru, 1);
        EXPECT_EQ(h[lane], one_h);
        EXPECT_EQ(c[lane], one_c);
        EXPECT_EQ(gru[lane], one_gru);
      }
    }
  }
}

TEST(RecurrentRows, ClosedGatesAndNotANumber) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const RecurrentRows& rows = recurrent_rows(ComputeType::kF32);
  float h = 0, c = 0.5f;
  const float closed[] = {-inf, inf, -inf, inf};
  rows.lstm(closed, &c, &h, &c, 1);
  EXPECT_NEAR(c, 0, 1e-30f);
  EXPECT_NEAR(h, 0, 1e-30f);
  const float open[] = {inf, inf, inf, -inf};
  c = 0.5f;
  rows.lstm(open, &c, &h, &c, 1);
  EXPECT_FLOAT_EQ(c, -0.5f);
  EXPECT_FLOAT_EQ(h, std::tanh(-0.5f));
  for (size_t gate = 0; gate < 4; ++gate) {
    float gates[] = {0, 0, 0, 0};
    gates[gate] = nan;
    c = 0.5f;
    rows.lstm(gates, &c, &h, &c, 1);
    EXPECT_TRUE(std::isnan(h)) << "gate " << gate;
  }
}

TEST(RecurrentRows, FollowTheEquationOfLstm) {
  const double gates[] = {0.3, -0.2, 1.5, 0.7}, c = -0.4;
  double h_out = 0, c_out = 0;
  recurrent_rows(ComputeType::kF64).lstm(gates, &c, &h_out, &c_out, 1);
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const double cell = sigmoid(1.5) * c + sigmoid(0.3) * std::tanh(0.7);
  EXPECT_NEAR(c_out, cell, 1e-14);
  EXPECT_NEAR(h_out, sigmoid(-0.2) * std::tanh(cell), 1e-14);
}

TEST(RecurrentRows, TheStateMayBeWrittenInPlace) {
  std::vector<float> gates(4 * 21, 0.5f), c(21, 0.25f), h(21), expected_h(21), expected_c(21);
  const RecurrentRows& rows = recurrent_rows(ComputeType::kF32);
  rows.lstm(gates.data(), c.data(), expected_h.data(), expected_c.data(), 21);
  rows.lstm(gates.data(), c.data(), h.data(), c.data(), 21);
  EXPECT_EQ(h, expected_h);
  EXPECT_EQ(c, expected_c);
}

}  // namespace
}  // namespace treadle::kernels

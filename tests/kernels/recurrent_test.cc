// The fused steps give what the elementwise rows give, to the bit, on every instruction set, and what the equations
// say.
#include "kernels/recurrent.h"

#include <gtest/gtest.h>

#include <cmath>
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

template <class T>
void expect_fused_equals_rows(size_t hidden) {
  const Steps<T> s(hidden);
  using Values = typename Steps<T>::Values;
  const RecurrentRows& fused = recurrent_rows(Steps<T>::kType);
  const Values h = s.part(s.h, 0), c = s.part(s.c, 0), z = s.part(s.z, 0);
  Values a(hidden), b(hidden);

  fused.lstm(s.x.data(), c.data(), a.data(), b.data(), hidden);
  const Values cell =
      s.add(s.mul(s.sigmoid(s.part(s.x, 2)), c), s.mul(s.sigmoid(s.part(s.x, 0)), s.tanh(s.part(s.x, 3))));
  EXPECT_EQ(b, cell);
  EXPECT_EQ(a, s.mul(s.sigmoid(s.part(s.x, 1)), s.tanh(cell)));

  fused.gru(s.x.data(), s.u.data(), h.data(), a.data(), hidden);
  const Values gate = s.sigmoid(s.add(s.part(s.x, 0), s.part(s.u, 0)));
  const Values reset = s.sigmoid(s.add(s.part(s.x, 1), s.part(s.u, 1)));
  EXPECT_EQ(a, s.blend(gate, s.tanh(s.add(s.mul(reset, s.part(s.u, 2)), s.part(s.x, 2))), h));

  fused.gru_gates(s.x.data(), h.data(), a.data(), b.data(), hidden);
  EXPECT_EQ(a, s.sigmoid(s.part(s.x, 0)));
  EXPECT_EQ(b, s.mul(s.sigmoid(s.part(s.x, 1)), h));

  fused.gru_update(s.x.data(), z.data(), h.data(), a.data(), hidden);
  EXPECT_EQ(a, s.blend(z, s.tanh(s.part(s.x, 0)), h));
}

TEST(RecurrentRows, EqualTheElementwiseRows) {
  for (int isa = 0; isa <= static_cast<int>(widest_isa()); ++isa) {
    const ScopedIsa scope(static_cast<Isa>(isa));
    for (size_t hidden : {0, 1, 3, 4, 7, 8, 15, 16, 17, 33, 64, 100}) {
      SCOPED_TRACE(testing::Message() << "instruction set " << isa << ", hidden " << hidden);
      expect_fused_equals_rows<float>(hidden);
      expect_fused_equals_rows<double>(hidden);
    }
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

// SampleTokens (internal): draws one token for each row, by its probability among the likeliest ones.
//
// Random numbers are those of the C++ library's std::minstd_rand0 and std::generate_canonical<double, 53>, one pair of
// draws for each row, so that a seed gives the same sequence as in onnxruntime. The state of the generator is a value,
// int64 [1].
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "op/op_def.h"
#include "op/work.h"

namespace treadle {

namespace {

struct SampleState {
  int64_t rows = 0, vocabulary = 0, kept = 1;
  float top_p = 0, filter = 0;
  bool custom = false;
  uint32_t scratch = 0;
};

// A linear congruential generator of 31 bits.
struct Source {
  uint64_t state;

  uint64_t next() { return state = state * 16807 % 2147483647; }
  double uniform() {  // [0, 1)
    constexpr double kRange = 2147483646.0;
    const auto low = static_cast<double>(next() - 1), high = static_cast<double>(next() - 1);
    const double drawn = (low + high * kRange) / (kRange * kRange);
    return drawn < 1 ? drawn : std::nextafter(1.0, 0.0);
  }
};

// A score and its token in one number that sorts by scores, then by tokens.
uint64_t ranked(float score, int64_t token, bool highest_first) {
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);  // -0 becomes 0
  const uint32_t ascending = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return uint64_t{highest_first ? ~ascending : ascending} << 32 | static_cast<uint64_t>(token);
}

// Sorts numbers whose lower halves ascend already; `spare` has the same length. Long lists are sorted by the digits of
// their upper halves.
void sort_ranked(uint64_t* numbers, uint64_t* spare, int64_t n) {
  constexpr int kDigits = 4, kBits = 8;
  constexpr int64_t kMany = 64;
  if (n < kMany) {
    std::sort(numbers, numbers + n);
    return;
  }
  std::array<std::array<uint32_t, 1 << kBits>, kDigits> places{};
  const auto digit = [](uint64_t number, int d) { return number >> (32 + d * kBits) & ((1 << kBits) - 1); };
  for (int64_t i = 0; i < n; ++i) {
    for (int d = 0; d < kDigits; ++d) ++places[static_cast<size_t>(d)][digit(numbers[i], d)];
  }
  for (int d = 0; d < kDigits; ++d) {
    auto& place = places[static_cast<size_t>(d)];
    std::exclusive_scan(place.begin(), place.end(), place.begin(), 0u);
    for (int64_t i = 0; i < n; ++i) spare[place[digit(numbers[i], d)]++] = numbers[i];
    std::swap(numbers, spare);
  }
  static_assert(kDigits % 2 == 0, "the numbers end where they began");
}

// Adds in eight sums, as onnxruntime's vectors do: the sum of many thousand probabilities depends on the order, and the
// number of tokens that are kept depends on the sum.
float sum_of(const float* numbers, int64_t n) {
  std::array<float, 8> sums{};
  for (int64_t i = 0; i < n; ++i) sums[static_cast<size_t>(i) % 8] += numbers[i];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// The position at which sorted tokens are cut: with `custom`, the number of tokens to keep, otherwise the number to
// drop.
int64_t cut(const SampleState& s, const float* probabilities) {
  const int64_t n = s.vocabulary, count = std::max<int64_t>(n - (s.custom ? 1 : s.kept), 1);
  const float scale = 1.0f / sum_of(probabilities, n);
  float cumulative = 0;
  for (int64_t i = 0; i < count; ++i) {
    cumulative += probabilities[i] * scale;
    if (s.custom ? cumulative > s.top_p : !(cumulative <= 1 - s.top_p)) return s.custom ? i + 1 : i;
  }
  return s.custom ? n : count;
}

// Sorts tokens by their scores with std::sort, which decides the order of equal scores.
void sort_again(const SampleState& s, const float* scores, uint64_t* tokens) {
  std::iota(tokens, tokens + s.vocabulary, uint64_t{0});
  std::sort(tokens, tokens + s.vocabulary,
            [&](uint64_t a, uint64_t b) { return s.custom ? scores[a] > scores[b] : scores[a] < scores[b]; });
}

// Gives tokens beyond the share top_p of the probability the filter's score.
void filter(const SampleState& s, float* scores, uint64_t* order, uint64_t* spare, float* probabilities) {
  const int64_t n = s.vocabulary;
  for (int64_t i = 0; i < n; ++i) order[i] = ranked(scores[i], i, s.custom);
  sort_ranked(order, spare, n);
  const auto token = [&](int64_t i) { return static_cast<uint32_t>(order[i]); };
  const float highest = scores[token(s.custom ? 0 : n - 1)];
  for (int64_t i = 0; i < n; ++i) probabilities[i] = std::exp(scores[token(i)] - highest);
  const int64_t at = cut(s, probabilities);
  // If equal scores are on both sides of the cut, the same tokens as in onnxruntime are dropped.
  if (at > 0 && at < n && scores[token(at - 1)] == scores[token(at)]) sort_again(s, scores, order);
  for (int64_t i = s.custom ? at : 0; i < (s.custom ? n : at); ++i) scores[token(i)] = s.filter;
}

int64_t draw(const SampleState& s, const float* scores, double* cumulative, Source& source) {
  float highest = std::numeric_limits<float>::lowest();
  for (int64_t i = 0; i < s.vocabulary; ++i) {
    if (std::isfinite(scores[i])) highest = std::max(highest, scores[i]);
  }
  double total = 0;
  for (int64_t i = 0; i < s.vocabulary; ++i) {
    if (std::isfinite(scores[i])) total += std::exp(static_cast<double>(scores[i]) - static_cast<double>(highest));
    cumulative[i] = total;
  }
  const double wanted = source.uniform() * total;
  const int64_t found = std::upper_bound(cumulative, cumulative + s.vocabulary, wanted) - cumulative;
  return std::min(found, s.vocabulary - 1);
}

uint32_t run_sample_tokens(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const SampleState*>(state);
  const auto* scores = static_cast<const float*>(slots[operands[0]]);
  Source source{static_cast<uint64_t>(*static_cast<const int64_t*>(slots[operands[1]]))};
  auto* tokens = static_cast<int64_t*>(slots[operands[2]]);
  auto* filtered = static_cast<float*>(slots[operands[4]]);
  const size_t n = static_cast<size_t>(s.vocabulary);
  auto* cumulative = static_cast<double*>(slots[operands[5]]);
  auto* order = reinterpret_cast<uint64_t*>(cumulative + n);
  auto* spare = order + n;
  auto* probabilities = reinterpret_cast<float*>(spare + n);
  auto* row = probabilities + n;
  for (int64_t r = 0; r < s.rows; ++r) {
    std::copy_n(scores + r * s.vocabulary, n, row);
    filter(s, row, order, spare, probabilities);
    if (filtered) std::copy_n(row, n, filtered + r * s.vocabulary);
    tokens[r] = draw(s, row, cumulative, source);
  }
  *static_cast<int64_t*>(slots[operands[3]]) = static_cast<int64_t>(source.state);
  return 0;
}

Status prepare_sample_tokens(PrepareContext& ctx) {
  auto* s = ctx.make_state<SampleState>();
  const auto& a = ctx.attributes();
  s->rows = ctx.inputs[0].dims[0];
  s->vocabulary = ctx.inputs[0].dims[1];
  s->kept = std::max<int64_t>(0, a.get_int("min_tokens_to_keep"));
  s->top_p = a.get_float("top_p");
  s->filter = a.get_float("filter_value");
  s->custom = a.get_int("custom") != 0;
  constexpr size_t kBytes = sizeof(double) + 2 * sizeof(uint64_t) + 2 * sizeof(float);
  ctx.scratch_bytes = static_cast<size_t>(s->vocabulary) * kBytes + 64;
  ctx.set_kernel(run_sample_tokens, s);
  return {};
}

Status infer_sample_tokens(InferContext& ctx) {
  const Shape* scores = ctx.shape(0);
  if (scores && scores->size() != 2) {
    return error(Code::kInvalidArgument, "the scores of the next token have shape {}, expected [rows,tokens]",
                 to_string(*scores));
  }
  if (scores && (*scores)[1].is_known(0)) {
    return error(Code::kInvalidArgument, "the scores are of no tokens, expected 1 or more");
  }
  ctx.set_output(0, ElementType::kInt64, {scores ? (*scores)[0] : Dim()});
  ctx.set_output(1, ctx.input(1));
  ctx.set_output(2, ctx.input(0));
  return {};
}

Work sample_work(const ir::Node& node) {
  return {.functions = 2 * work::elements_of(node.inputs[0]), .one_by_one = 8 * work::elements_of(node.inputs[0])};
}

}  // namespace

}  // namespace treadle

TREADLE_OP(SampleTokens, "treadle") {
  op.since(1)
      .in("scores", "tensor(float)")
      .in("source", "tensor(int64)")
      .out("tokens", "tensor(int64)")
      .out("source_after", "tensor(int64)")
      .out("filtered", "tensor(float)", Arity::kOptional)
      .attr("top_p", 0.0)
      .attr("filter_value", -1e20)
      .attr("min_tokens_to_keep", 0)
      .attr("custom", 0);
  op.infer(infer_sample_tokens)
      .prepare(prepare_sample_tokens)
      .work(sample_work)
      .no_axes("its rows take their numbers one after the other");
}

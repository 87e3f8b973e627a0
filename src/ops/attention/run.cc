#include <algorithm>
#include <cstring>
#include <limits>

#include "base/thread_pool.h"
#include "kernels/normalize.h"
#include "ops/attention/attention.h"

namespace treadle::attention {

namespace {

// The keys that a query may attend, as [begin, end).
struct Range {
  int64_t begin, end;
};

template <class W>
class Run {
 public:
  Run(const State& s, void* const* slots, const uint32_t* operands, int worker)
      : s_(s),
        slots_(slots),
        operands_(operands),
        scratch_(static_cast<std::byte*>(slots[operands[s.scratch]]) + static_cast<size_t>(worker) * s.worker_scratch) {
  }

  // Computes heads of keys [begin, end), counted through the batch, each with the query heads that share it.
  void units(int64_t begin, int64_t end) {
    const int64_t shared = s_.keys.fresh.heads, group = s_.query.heads / shared;
    // Query heads that share keys are computed together if their rows form a single run.
    const bool joined = s_.query.nested() && s_.result.nested();
    for (; begin < end; ++begin) {
      const int64_t b = begin / shared, h = begin % shared;
      gather(s_.keys, kKey, kPastKey, b, h, keys_, key_step_);
      gather(s_.values, kValue, kPastValue, b, h, values_, value_step_);
      if (s_.packs_keys) pack_keys();
      for (int64_t g = 0; g < (joined ? 1 : group); ++g) {
        heads(b, h * group + g, s_.query.length * (joined ? group : 1));
      }
    }
  }

 private:
  static constexpr W kMinusInfinity = -std::numeric_limits<W>::infinity();

  W* at(size_t offset) const { return reinterpret_cast<W*>(scratch_ + offset); }
  const std::byte* input(size_t i) const { return static_cast<const std::byte*>(slots_[operands_[i]]); }
  std::byte* output(size_t i) const { return static_cast<std::byte*>(slots_[operands_[s_.outputs + i]]); }

  // Past and new rows of one head in the type of the arithmetic. Also writes them to the present output.
  void gather(const Cache& c, size_t fresh, size_t past, int64_t b, int64_t h, const W*& rows, int64_t& step) {
    const size_t width = byte_width(c.fresh.type);
    const auto bytes = [&](int64_t elements) { return static_cast<size_t>(elements) * width; };
    const std::byte* from = input(fresh) + bytes(c.fresh.at(b, h));
    const int64_t head = b * c.fresh.heads + h, size = c.fresh.size;
    const std::byte* before = c.past > 0 ? input(past) + bytes(head * c.past * size) : nullptr;
    if (c.present) {
      auto* to = static_cast<std::byte*>(slots_[operands_[c.present]]) + bytes(head * c.total() * size);
      if (before) std::memcpy(to, before, bytes(c.past * size));
      for (int64_t i = 0; i < c.fresh.length; ++i) {
        std::memcpy(to + bytes((c.past + i) * size), from + bytes(i * c.fresh.row_stride), bytes(size));
      }
      rows = reinterpret_cast<const W*>(to);
    }
    step = size;
    if (c.in_place) {
      rows = reinterpret_cast<const W*>(from);
      step = c.fresh.row_stride;
    } else if (!c.in_present) {
      W* to = at(c.wide);
      if (before) kernels::convert(c.widen, before, to, static_cast<size_t>(c.past * size));
      for (int64_t i = 0; i < c.fresh.length; ++i) {
        kernels::convert(c.widen, from + bytes(i * c.fresh.row_stride), to + (c.past + i) * size,
                         static_cast<size_t>(size));
      }
      rows = to;
    }
  }

  void pack_keys() {
    kernels::GemmPlan plan = s_.score_plan;
    plan.shape.b_col = key_step_;
    W* packed = at(s_.packed_keys);
    kernels::pack_b(plan, keys_, packed);
    keys_ = packed;
  }

  // Computes `count` rows of queries from head `first` on.
  void heads(int64_t b, int64_t first, int64_t count) {
    const int64_t of_unit = s_.query.length * (s_.query.heads / s_.keys.fresh.heads);
    for (int64_t row = 0; row < count; row += s_.block) {
      const int64_t rows = std::min(s_.block, count - row);
      block(b, first, row, rows);
      if (stop_.after(s_.unit_ns * static_cast<double>(rows) / static_cast<double>(of_unit))) return;
    }
  }

  Range range(int64_t b, int64_t query) const {
    const int64_t total = s_.keys.total(), offset = offset_of(b), position = offset + query;
    int64_t begin = 0, end = total;
    if (s_.left >= 0) begin = std::clamp<int64_t>(position - s_.left, 0, total);
    if (s_.causal && !(s_.last_sees_all && query == s_.query.length - 1)) end = std::min(end, position + 1);
    if (s_.right >= 0 && position < total - s_.right) end = std::min(end, position + s_.right + 1);
    if (s_.has_lengths) end = std::min(end, valid_length(b));
    return {begin, std::max(begin, end)};
  }
  int64_t valid_length(int64_t b) const {
    return std::clamp<int64_t>(reinterpret_cast<const int64_t*>(input(kValidLength))[b], 0, s_.keys.total());
  }
  // The position of query 0.
  int64_t offset_of(int64_t b) const {
    if (!s_.has_lengths) return s_.keys.past;
    const int64_t offset = valid_length(b) - s_.query.length;
    return s_.from_zero ? std::max<int64_t>(0, offset) : offset;
  }

  void block(int64_t b, int64_t first, int64_t row, int64_t rows) {
    const int64_t total = s_.keys.total();
    Range used{total, 0};
    for (int64_t r = row; r < row + rows; ++r) {
      const Range one = range(b, r % s_.query.length);
      if (one.begin >= one.end) continue;
      used = {std::min(used.begin, one.begin), std::max(used.end, one.end)};
    }
    const Range multiplied = s_.has_scores ? Range{0, total} : used;
    W* scores = at(s_.scores);
    if (multiplied.begin < multiplied.end) multiply_keys(b, first, row, rows, multiplied);
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t head = first + (row + i) / s_.query.length, query = (row + i) % s_.query.length;
      finish_row(b, head, query, used, scores + i * s_.score_step);
    }
    weigh_values(b, first, row, rows, used);
  }

  void multiply_keys(int64_t b, int64_t first, int64_t row, int64_t rows, Range columns) {
    const int64_t from = s_.query.at(b, first) + row * s_.query.step();
    const size_t width = byte_width(s_.query.type);
    const std::byte* query = input(kQuery) + static_cast<size_t>(from) * width;
    kernels::GemmPlan plan = s_.score_plan;
    if (!s_.packs_keys) plan.shape.b_col = key_step_;
    const W* a = reinterpret_cast<const W*>(query);
    if (s_.query.type != s_.wide) {
      W* wide = at(s_.query_rows);
      for (int64_t i = 0; i < rows; ++i) {
        kernels::convert(s_.widen_query, query + static_cast<size_t>(i * s_.query.step()) * width,
                         wide + i * s_.query.size, static_cast<size_t>(s_.query.size));
      }
      a = wide;
    }
    const int64_t begin = columns.begin / plan.column_step * plan.column_step;
    kernels::run_gemm_range(plan, {a, keys_, nullptr, at(s_.scores), scratch_ + s_.gemm},
                            {0, rows, begin, columns.end});
  }

  // Turns one row of products into probabilities, which are 0 where the query does not attend.
  void finish_row(int64_t b, int64_t head, int64_t query, Range used, W* row) {
    const int64_t total = s_.keys.total();
    const Range range = this->range(b, query);
    W* const begin = row + range.begin;
    const int64_t count = range.end - range.begin;
    if (s_.has_scores && s_.stage == Stage::kProduct) show(b, head, query, row);
    if (s_.softcap > 0) {
      const Range capped = s_.has_scores ? Range{0, total} : range;
      cap(row + capped.begin, capped.end - capped.begin);
    }
    if (s_.has_scores && s_.stage == Stage::kCapped) show(b, head, query, row);
    const bool attends = s_.has_mask ? add_mask(b, head, query, range, row) : count > 0;
    if (s_.has_scores && (s_.stage == Stage::kBiased || s_.stage == Stage::kAttended)) {
      const W masked = s_.stage == Stage::kBiased ? kMinusInfinity : W{0};
      std::fill(row, begin, masked);
      std::fill(begin + count, row + total, masked);
      show(b, head, query, row);
    }
    if (attends && s_.has_sink) {
      begin[count] = sink(head);  // score of an imaginary key outside of the range, or behind the row
      kernels::softmax(kernels::SoftmaxKind::kSoftmax, s_.wide, begin, begin, 1, static_cast<size_t>(count + 1), 1);
    } else if (attends) {
      kernels::softmax(kernels::SoftmaxKind::kSoftmax, s_.wide, begin, begin, 1, static_cast<size_t>(count), 1);
    } else {
      std::fill_n(begin, count, W{0});
    }
    const Range cleared = s_.has_scores ? Range{0, total} : used;
    if (cleared.begin < range.begin) std::fill(row + cleared.begin, begin, W{0});
    if (range.end < cleared.end) std::fill(begin + count, row + cleared.end, W{0});
    if (s_.has_scores && s_.stage == Stage::kProbabilities) show(b, head, query, row);
  }

  W sink(int64_t head) const {
    if (!s_.has_sinks) return 0;
    W value;
    kernels::convert(s_.widen_query, input(kSink) + static_cast<size_t>(head) * byte_width(s_.query.type), &value, 1);
    return value;
  }

  void show(int64_t b, int64_t head, int64_t query, const W* row) {
    const int64_t total = s_.keys.total(), at = ((b * s_.query.heads + head) * s_.query.length + query) * total;
    kernels::convert(s_.narrow_scores, row, output(kScores) + static_cast<size_t>(at) * byte_width(s_.query.type),
                     static_cast<size_t>(total));
  }

  void cap(W* x, int64_t n) {
    const W cap = static_cast<W>(s_.softcap);
    for (int64_t i = 0; i < n; ++i) x[i] /= cap;
    s_.tanh(x, nullptr, x, static_cast<size_t>(n), nullptr);
    for (int64_t i = 0; i < n; ++i) x[i] *= cap;
  }

  // Adds the mask. Whether it leaves any key to attend.
  bool add_mask(int64_t b, int64_t head, int64_t query, Range range, W* row) {
    const int64_t* strides = s_.mask_strides;
    const auto offset = static_cast<size_t>(b * strides[0] + head * strides[1] + query * strides[2]);
    const std::byte* mask = input(kMask) + offset * byte_width(s_.mask_type);
    const int64_t end = std::min(range.end, s_.mask_length);
    bool attends = false;
    if (s_.mask_type == ElementType::kBool) {
      for (int64_t i = range.begin; i < end; ++i) {
        const bool kept = std::to_integer<uint8_t>(mask[i]) != 0;
        attends |= kept;
        row[i] = kept ? row[i] : kMinusInfinity;
      }
    } else {
      const W* bias = reinterpret_cast<const W*>(mask);
      if (s_.mask_type != s_.wide) {
        kernels::convert(s_.widen_mask, mask, at(s_.mask_row), static_cast<size_t>(s_.mask_length));
        bias = at(s_.mask_row);
      }
      for (int64_t i = range.begin; i < end; ++i) {
        attends |= bias[i] != kMinusInfinity;
        row[i] += bias[i];
      }
    }
    if (end < range.end) std::fill(row + std::max(end, range.begin), row + range.end, kMinusInfinity);
    return attends;
  }

  void weigh_values(int64_t b, int64_t first, int64_t row, int64_t rows, Range used) {
    const int64_t size = s_.result.size, step = s_.result.step();
    const size_t width = byte_width(s_.result.type);
    const int64_t to = s_.result.at(b, first) + row * step;
    std::byte* out = output(kResult) + static_cast<size_t>(to) * width;
    const bool narrows = s_.result.type != s_.wide;
    W* sums = narrows ? at(s_.result_rows) : reinterpret_cast<W*>(out);
    kernels::GemmPlan plan = s_.value_plan;
    plan.shape.k = std::max<int64_t>(0, used.end - used.begin);
    plan.shape.b_row = value_step_;
    plan.shape.c_row = narrows ? size : step;
    if (plan.shape.k > 0) {
      kernels::run_gemm_rows(plan, rows, at(s_.scores) + used.begin, values_ + used.begin * value_step_, nullptr, sums,
                             scratch_ + s_.gemm);
    } else {
      for (int64_t i = 0; i < rows; ++i) std::fill_n(sums + i * plan.shape.c_row, size, W{0});
    }
    if (!narrows) return;
    for (int64_t i = 0; i < rows; ++i) {
      kernels::convert(s_.narrow_result, sums + i * size, out + static_cast<size_t>(i * step) * width,
                       static_cast<size_t>(size));
    }
  }

  const State& s_;
  void* const* slots_;
  const uint32_t* operands_;
  std::byte* scratch_;
  const W *keys_ = nullptr, *values_ = nullptr;
  int64_t key_step_ = 0, value_step_ = 0;
  StopPoll stop_;
};

}  // namespace

uint32_t run_attention(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const State*>(state);
  parallel_for(s.units(), s.unit_ns, [&](int64_t begin, int64_t end, int worker) {
    if (s.wide == ElementType::kDouble) {
      Run<double>(s, slots, operands, worker).units(begin, end);
    } else {
      Run<float>(s, slots, operands, worker).units(begin, end);
    }
  });
  return 0;
}

}  // namespace treadle::attention

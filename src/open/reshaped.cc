#include "open/reshaped.h"

#include <set>

namespace treadle::open {

void MergedAxes::add(const Dim& product, std::span<const Dim> axes) {
  const auto [entry, fresh] = axes_.emplace(product.to_string(), Shape(axes.begin(), axes.end()));
  if (!fresh && !same(entry->second, Shape(axes.begin(), axes.end()))) entry->second.clear();
}

Shape MergedAxes::apart(const Dim& dim) const {
  const auto found = dim.is_symbolic() ? axes_.find(dim.to_string()) : axes_.end();
  return found == axes_.end() || found->second.empty() ? Shape{dim} : found->second;
}

namespace {

// By axis: the number of elements of everything before it; at the end, of all.
Shape elements_before(const Shape& sizes) {
  Shape before = {1};
  for (const Dim& size : sizes) before.push_back(before.back() * size);
  return before;
}

struct Range {
  size_t from = 0, to = 0;

  size_t size() const { return to - from; }
};

class Placement {
 public:
  Placement(const Reshaping& reshaping, const Openings& openings, MergedAxes& merged)
      : reshaping_(reshaping), openings_(openings), merged_(merged) {
    for (const Dim& size : reshaping.in) {
      for (const Dim& part : merged.apart(size)) in_.push_back(part);
    }
    for (const Dim& size : in_) in_old_.push_back(openings.at(size));
    before_in_ = elements_before(in_old_);
    before_out_ = elements_before(reshaping.out_old);
  }

  Reshaped find() {
    std::map<size_t, Range> axes;  // by axis of the result: the axes of the operand that it is made of
    for (size_t i = 0; i < in_.size(); ++i) {
      if (!openings_.opens(in_[i])) continue;
      size_t to = 0;
      if (std::string why = find_one(i, to, axes); !why.empty()) return {{}, std::move(why)};
    }
    Reshaped result = {reshaping_.out_old, {}};
    for (const auto& [axis, range] : axes) {
      Dim product = 1;
      for (size_t i = range.from; i < range.to; ++i) product = product * in_[i];
      result.out[axis] = product;
      if (range.size() > 1) merged_.add(product, std::span(in_).subspan(range.from, range.size()));
    }
    if (!same(element_count(result.out), element_count(reshaping_.in))) return {{}, "its elements cannot be counted"};
    return result;
  }

 private:
  // The axis of the result into which axis `i` goes, added to `axes`. Returns why there is none.
  std::string find_one(size_t i, size_t& to, std::map<size_t, Range>& axes) {
    std::vector<std::pair<size_t, Range>> kept, merged;
    for (size_t j = 0; j < reshaping_.out_old.size(); ++j) {
      const auto range = range_in(i, j);
      if (!range) continue;
      (range->size() == 1 ? kept : merged).emplace_back(j, *range);
    }
    const auto& candidates = kept.empty() ? merged : kept;
    if (candidates.empty())
      return fmt::format("size {} goes into no axis of the result as a whole", in_[i].to_string());
    const auto chosen = choose(i, candidates);
    if (!chosen) return ambiguous(i, candidates);
    to = chosen->first;
    Range& range = axes.emplace(to, chosen->second).first->second;
    range = {std::min(range.from, chosen->second.from), std::max(range.to, chosen->second.to)};
    return {};
  }

  // The fewest axes of the operand, `i` among them, that make up axis `j` of the result.
  std::optional<Range> range_in(size_t i, size_t j) const {
    std::optional<size_t> from, to;
    for (size_t a = i + 1; a-- > 0 && !from;) {
      if (same(before_in_[a], before_out_[j])) from = a;
    }
    for (size_t b = i + 1; b <= in_.size() && !to; ++b) {
      if (same(before_in_[b], before_out_[j + 1])) to = b;
    }
    return from && to ? std::optional<Range>({*from, *to}) : std::nullopt;
  }

  using Candidates = std::vector<std::pair<size_t, Range>>;

  std::optional<Candidates::value_type> choose(size_t i, const Candidates& candidates) const {
    if (candidates.size() == 1) return candidates[0];
    for (const auto& candidate : candidates) {
      const size_t j = candidate.first;
      const bool is_unchanged = same(in_old_, reshaping_.out_old) && j == i;
      const bool follows = reshaping_.target && (*reshaping_.target)[j] == -1;
      const bool copies =
          reshaping_.target && (*reshaping_.target)[j] == 0 && in_.size() == reshaping_.in.size() && j == i;
      if (is_unchanged || follows || copies) return candidate;
    }
    return std::nullopt;
  }

  std::string ambiguous(size_t i, const Candidates& candidates) const {
    std::string axes;
    for (const auto& [axis, range] : candidates) axes += fmt::format("{}{}", axes.empty() ? "" : " or ", axis);
    return fmt::format("size {} could become axis {} of the result", in_[i].to_string(), axes);
  }

  const Reshaping& reshaping_;
  const Openings& openings_;
  MergedAxes& merged_;
  Shape in_, in_old_, before_in_, before_out_;
};

}  // namespace

Reshaped reshaped(const Reshaping& reshaping, const Openings& openings, MergedAxes& merged) {
  return Placement(reshaping, openings, merged).find();
}

}  // namespace treadle::open

#include "stream/frame_counts.h"

#include <algorithm>

namespace treadle::stream {

namespace {

constexpr int64_t kMaxHop = int64_t{1} << 24;
constexpr int64_t kMaxFirst = int64_t{1} << 32;

int64_t floor_div(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

}  // namespace

FrameCounts::FrameCounts(Lattice lattice) : lattice_(lattice) {
  Term samples;
  samples.at_first = lattice.first;
  samples.per_hop = lattice.hop;
  terms_.push_back(std::move(samples));
}

int FrameCounts::add_term(Term term) {
  if (lattice_.hop > 0) {
    for (size_t i = 0; i < term.of.size(); ++i) {
      const Term& of = terms_[index(term.of[i])];
      const int64_t frames = floor_div((of.at_first + term.add) * term.mul, term.div);
      term.at_first = i == 0 ? frames : std::min(term.at_first, frames);
      term.per_hop = of.per_hop * term.mul / term.div;
    }
  }
  terms_.push_back(std::move(term));
  return static_cast<int>(terms_.size()) - 1;
}

int FrameCounts::scaled(int of, int64_t add, int64_t whole_add, int64_t mul, int64_t div) {
  Term term;
  term.of = {of};
  term.add = add;
  term.whole_add = whole_add;
  term.mul = mul;
  term.div = div;
  const Rate& rate = terms_[index(of)].rate;
  const int64_t frames = rate.frames * mul, samples = rate.samples * div;
  const int64_t common = std::gcd(frames, samples);
  term.rate = {frames / common, samples / common};
  return add_term(std::move(term));
}

int FrameCounts::least(const std::vector<int>& of) {
  if (std::all_of(of.begin(), of.end(), [&](int count) { return count == of[0]; })) return of[0];
  Term term;
  term.of = of;
  term.rate = terms_[index(of[0])].rate;
  return add_term(std::move(term));
}

bool FrameCounts::first_is_like_others() const {
  return std::all_of(terms_.begin(), terms_.end(), [](const Term& t) { return t.at_first == t.per_hop; });
}

int64_t FrameCounts::delay(int c) const {
  const int64_t missing = count(lattice_.first, true)[index(c)] - at_first(c);
  const Rate& rate = terms_[index(c)].rate;
  return missing <= 0 ? 0 : -floor_div(-missing * rate.samples, rate.frames);
}

std::vector<int64_t> FrameCounts::count(int64_t samples, bool whole) const {
  std::vector<int64_t> frames{samples};
  for (size_t t = 1; t < terms_.size(); ++t) {
    const Term& term = terms_[t];
    int64_t least = 0;
    for (size_t i = 0; i < term.of.size(); ++i) {
      const int64_t add = whole ? term.whole_add : term.add;
      const int64_t here = floor_div((frames[index(term.of[i])] + add) * term.mul, term.div);
      least = i == 0 ? here : std::min(least, here);
    }
    frames.push_back(least);
  }
  return frames;
}

Result<int64_t> FrameCounts::shortest_hop() const {
  int64_t hop = 1;
  for (const Term& term : terms_) {
    hop = std::lcm(hop, term.rate.samples);
    if (hop > kMaxHop) return error(Code::kLimit, "the model gives frames at rates that meet every {} samples", hop);
  }
  return hop;
}

Result<Lattice> FrameCounts::solve() const {
  TREADLE_ASSIGN(const int64_t hop, shortest_hop());
  const auto enough = [&](int64_t samples) {
    const std::vector<int64_t> frames = count(samples, false);
    return std::all_of(frames.begin(), frames.end(), [](int64_t n) { return n >= 1; }) &&
           std::all_of(needs_.begin(), needs_.end(),
                       [&](const auto& need) { return frames[index(need.first)] >= need.second; });
  };
  int64_t high = 1;
  while (!enough(high)) {
    high *= 2;
    if (high > kMaxFirst) return error(Code::kLimit, "no first block is long enough");
  }
  int64_t low = high / 2;  // not enough
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return Lattice{hop, high};
}

}  // namespace treadle::stream

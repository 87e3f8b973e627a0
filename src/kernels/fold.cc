#include "kernels/fold.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/in_pieces.h"
#include "kernels/costs.h"

namespace treadle::kernels {

namespace {

// The cost of a row beside its products, counted in products. Splitting a value takes two loads, two stores and up to
// three operations, of a vector each. Multiplying by a list takes one call for a block of rows.
constexpr int64_t kValueWork = 4;
constexpr int64_t kListWork = 512;
constexpr int64_t kLanes = 16;  // filters that are computed together

int64_t product_work(int64_t filters, int64_t length) {
  if (filters == 0) return 0;
  return (filters + kLanes - 1) / kLanes * kLanes * length + kListWork;
}

// The filters that are multiplied by one list.
struct Group {
  std::vector<int32_t> filters;
  std::vector<std::vector<double>> weights;

  size_t size() const { return filters.size(); }
  void add(int32_t filter, std::vector<double> w) {
    filters.push_back(filter);
    weights.push_back(std::move(w));
  }
};

// Two mirrored positions; `first` is the lower one.
struct Pair {
  size_t first, second;
};

// All pairs of a list, channel by channel.
struct Pairs {
  size_t length, of_channel, count;
  bool first_alone;

  Pair operator[](size_t p) const {
    const size_t begin = p / of_channel * length, i = p % of_channel + first_alone;
    return {begin + i, begin + length - 1 - i + first_alone};
  }
};

// A way to split a list.
struct Choice {
  bool first_alone = false;
  std::vector<double> first_factors, second_factors;  // by pair
  std::vector<double> signs;                          // by filter: 1: even, -1: odd, 0: both
  int64_t work = 0;
};

class Folder {
 public:
  Folder(int64_t channels, double unit, std::vector<double> largest)
      : channels_(static_cast<size_t>(channels)), tolerance_(kWeightTolerance * unit), largest_(std::move(largest)) {
    missed_.assign(largest_.size(), 0);
    bank_.fold.channels = static_cast<int32_t>(channels);
    bank_.fold.filters = static_cast<int32_t>(largest_.size());
  }

  Bank fold(Group all, int64_t length) {
    const auto silent = take_silent(all);
    add_list(length);
    visit(0, std::move(all));
    place_silent(silent);
    number_filters();
    bank_.fold.plain_work = static_cast<int64_t>(largest_.size()) * values(0);
    return std::move(bank_);
  }

 private:
  // Takes out filters that are all zeros, such as the sine of frequency 0. They may be multiplied by any list, since
  // their products are 0.
  std::vector<int32_t> take_silent(Group& all) {
    std::vector<int32_t> silent;
    Group rest;
    for (size_t f = 0; f < all.size(); ++f) {
      if (largest_[static_cast<size_t>(all.filters[f])] == 0) {
        silent.push_back(all.filters[f]);
      } else {
        rest.add(all.filters[f], std::move(all.weights[f]));
      }
    }
    all = std::move(rest);
    return silent;
  }

  // Adds each silent filter to the list where it costs least: where it fills up a vector, or where products are
  // shortest.
  void place_silent(const std::vector<int32_t>& silent) {
    for (const int32_t filter : silent) {
      size_t best = 0;
      int64_t least = std::numeric_limits<int64_t>::max();
      for (size_t i = 0; i < groups_.size(); ++i) {
        const auto filters = static_cast<int64_t>(groups_[i].size());
        const int64_t length = values(i);
        const int64_t more = product_work(filters + 1, length) - product_work(filters, length);
        if (more < least) least = more, best = i;
      }
      groups_[best].add(filter, std::vector<double>(static_cast<size_t>(values(best))));
    }
  }

  void number_filters() {
    Fold& fold = bank_.fold;
    for (size_t i = 0; i < groups_.size(); ++i) {
      fold.lists[i].first_filter = static_cast<int32_t>(bank_.order.size());
      fold.lists[i].filters = static_cast<int32_t>(groups_[i].size());
      fold.work += product_work(fold.lists[i].filters, values(i));
      if (fold.lists[i].is_split) fold.work += kValueWork * values(i);
      for (size_t f = 0; f < groups_[i].size(); ++f) {
        bank_.order.push_back(groups_[i].filters[f]);
        bank_.weights.push_back(std::move(groups_[i].weights[f]));
      }
    }
    fold.factor_count = static_cast<int32_t>(bank_.factors.size());
  }

  int64_t values(size_t list) const { return static_cast<int64_t>(channels_) * bank_.fold.lists[list].length; }

  int32_t add_list(int64_t length) {
    Fold& fold = bank_.fold;
    fold.lists[static_cast<size_t>(fold.list_count)].length = static_cast<int32_t>(length);
    groups_.emplace_back();
    return fold.list_count++;
  }

  // Splits list `at` as long as that pays. The filters that do not fit a split are multiplied by the list itself.
  void visit(int32_t at, Group group) {
    const auto list = static_cast<size_t>(at);
    const std::optional<Choice> choice = choose(list, group);
    if (!choice) {
      groups_[list] = std::move(group);
      return;
    }
    Group rest, even, odd;
    for (size_t f = 0; f < group.size(); ++f) {
      if (stop_.after(costs::kFoldPairNs * static_cast<double>(values(list)))) return;
      const double sign = choice->signs[f];
      if (sign == 0) {
        rest.add(group.filters[f], std::move(group.weights[f]));
      } else {
        auto folded = folded_weights(list, *choice, group.weights[f], sign);
        missed_[static_cast<size_t>(group.filters[f])] += miss(list, *choice, group.weights[f], sign);
        (sign > 0 ? even : odd).add(group.filters[f], std::move(folded));
      }
    }
    groups_[list] = std::move(rest);
    Fold& fold = bank_.fold;
    fold.lists[list].is_split = true;
    Fold::Split& split = fold.splits[static_cast<size_t>(fold.split_count++)];
    split.from = at;
    split.first_alone = choice->first_alone;
    split.factors = add_factors(*choice);
    const int64_t length = Fold::folded_length(fold.lists[list], choice->first_alone);
    if (even.size() > 0) split.sums = add_list(length);
    if (odd.size() > 0) split.differences = add_list(length);
    const int32_t sums = split.sums, differences = split.differences;
    if (sums >= 0) visit(sums, std::move(even));
    if (differences >= 0) visit(differences, std::move(odd));
  }

  int32_t add_factors(const Choice& choice) {
    const auto is_one = [](double x) { return x == 1; };
    if (std::all_of(choice.first_factors.begin(), choice.first_factors.end(), is_one) &&
        std::all_of(choice.second_factors.begin(), choice.second_factors.end(), is_one)) {
      return -1;
    }
    std::vector<double>& factors = bank_.factors;
    const auto at = static_cast<int32_t>(factors.size());
    const auto pairs = static_cast<std::ptrdiff_t>(choice.first_factors.size() / channels_);
    for (size_t c = 0; c < channels_; ++c) {
      const std::ptrdiff_t from = static_cast<std::ptrdiff_t>(c) * pairs;
      for (const auto* side : {&choice.first_factors, &choice.second_factors}) {
        factors.insert(factors.end(), side->begin() + from, side->begin() + from + pairs);
      }
    }
    return at;
  }

  // The best of four ways to split, if one of them pays.
  std::optional<Choice> choose(size_t list, const Group& group) {
    const Fold& fold = bank_.fold;
    std::optional<Choice> best;
    if (fold.split_count == Fold::kMostSplits || fold.list_count + 2 > Fold::kMostLists) return best;
    int64_t least = product_work(static_cast<int64_t>(group.size()), values(list));
    if (least <= 2 * kListWork) return best;
    for (const bool first_alone : {true, false}) {
      for (const bool weighted : {false, true}) {
        std::optional<Choice> choice = attempt(list, group, first_alone, weighted);
        if (!choice || choice->work >= least) continue;
        least = choice->work;
        best = std::move(choice);
      }
    }
    return best;
  }

  Pairs pairs_of(size_t list, bool first_alone) const {
    const Fold::List& l = bank_.fold.lists[list];
    const auto of_channel = static_cast<size_t>(Fold::pairs(l, first_alone));
    return {static_cast<size_t>(l.length), of_channel, channels_ * of_channel, first_alone};
  }

  // Goes from pair to pair, and keeps the filters that fit as long as there are enough of them for a gain.
  std::optional<Choice> attempt(size_t list, const Group& group, bool first_alone, bool weighted) {
    Choice choice;
    choice.first_alone = first_alone;
    choice.signs.assign(group.size(), 0);
    std::vector<size_t> left;
    for (size_t f = 0; f < group.size(); ++f) {
      if (std::isfinite(largest_[static_cast<size_t>(group.filters[f])])) left.push_back(f);
    }
    std::vector<double> worst(group.size());
    const Pairs pairs = pairs_of(list, first_alone);
    for (size_t p = 0; p < pairs.count; ++p) {
      if (stop_.after(costs::kFoldPairNs * static_cast<double>(left.size()))) return std::nullopt;
      const Pair pair = pairs[p];
      const auto [first, second] = weighted ? common_factors(group, left, pair) : std::pair(1.0, 1.0);
      choice.first_factors.push_back(first);
      choice.second_factors.push_back(second);
      std::erase_if(left, [&](size_t f) { return !fits(group, f, pair, first, second, choice.signs[f], worst[f]); });
      if (product_work(static_cast<int64_t>(left.size()), values(list)) <= 2 * kListWork) return std::nullopt;
    }
    std::vector<double> signs(group.size(), 0);
    for (const size_t f : left) signs[f] = choice.signs[f] == 0 ? 1 : choice.signs[f];
    choice.signs = std::move(signs);
    choice.work = work_of(list, choice);
    return choice;
  }

  int64_t work_of(size_t list, const Choice& choice) const {
    const auto count = [&](double sign) { return std::count(choice.signs.begin(), choice.signs.end(), sign); };
    const int64_t folded =
        static_cast<int64_t>(channels_) * Fold::folded_length(bank_.fold.lists[list], choice.first_alone);
    return product_work(count(0), values(list)) + product_work(count(1), folded) + product_work(count(-1), folded) +
           kValueWork * values(list);
  }

  // The factors of a pair that suit most of the filters; the larger factor is 1. The other starts from the median of
  // the filters' ratios, and is refined by the filters that are close to it.
  static std::pair<double, double> common_factors(const Group& group, const std::vector<size_t>& left, Pair pair) {
    double first_sum = 0, second_sum = 0;
    for (const size_t f : left) {
      first_sum += std::abs(group.weights[f][pair.first]);
      second_sum += std::abs(group.weights[f][pair.second]);
    }
    const bool swapped = second_sum > first_sum;
    if (swapped) std::swap(pair.first, pair.second);
    std::vector<double> ratios;
    for (const size_t f : left) {
      const std::vector<double>& w = group.weights[f];
      if (w[pair.first] != 0) ratios.push_back(std::abs(w[pair.second] / w[pair.first]));
    }
    double ratio = 0;
    if (!ratios.empty()) {
      const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
      std::nth_element(ratios.begin(), middle, ratios.end());
      ratio = refined_ratio(group, left, pair, *middle);
    }
    return swapped ? std::pair(ratio, 1.0) : std::pair(1.0, ratio);
  }

  // Refines the ratio by least squares.
  static double refined_ratio(const Group& group, const std::vector<size_t>& left, Pair pair, double ratio) {
    constexpr double kNear = 1e-2, kOne = 1e-7;
    double products = 0, squares = 0;
    for (const size_t f : left) {
      const double first = std::abs(group.weights[f][pair.first]), second = std::abs(group.weights[f][pair.second]);
      if (std::abs(second - ratio * first) > kNear * first) continue;
      products += first * second;
      squares += first * first;
    }
    if (squares > 0) ratio = products / squares;
    ratio = std::min(ratio, 1.0);
    return ratio > 1 - kOne ? 1 : ratio;
  }

  // The one weight that both weights of a pair become, up to the factors `first` and sign * `second`.
  static double folded_weight(const std::vector<double>& w, Pair pair, double first, double second, double sign) {
    return (first * w[pair.first] + sign * second * w[pair.second]) / (first * first + second * second);
  }
  static double moved(const std::vector<double>& w, Pair pair, double first, double second, double sign) {
    const double folded = folded_weight(w, pair, first, second, sign);
    return std::max(std::abs(w[pair.first] - first * folded), std::abs(w[pair.second] - sign * second * folded));
  }

  // Whether this pair of the filter fits the filter's sign. The first pair that fits only one sign sets `sign`.
  bool fits(const Group& group, size_t f, Pair pair, double first, double second, double& sign, double& worst) const {
    const std::vector<double>& w = group.weights[f];
    const auto filter = static_cast<size_t>(group.filters[f]);
    const double most = tolerance_ * largest_[filter] - missed_[filter];
    const double even = moved(w, pair, first, second, 1), odd = moved(w, pair, first, second, -1);
    if (sign == 0 && even <= most && odd <= most) {
      worst = std::max({worst, even, odd});
      return true;
    }
    if (sign == 0) sign = even < odd ? 1 : -1;
    worst = std::max(worst, sign > 0 ? even : odd);
    return worst <= most;
  }

  double miss(size_t list, const Choice& choice, const std::vector<double>& w, double sign) const {
    double most = 0;
    const Pairs pairs = pairs_of(list, choice.first_alone);
    for (size_t p = 0; p < pairs.count; ++p) {
      most = std::max(most, moved(w, pairs[p], choice.first_factors[p], choice.second_factors[p], sign));
    }
    return most;
  }

  std::vector<double> folded_weights(size_t list, const Choice& choice, const std::vector<double>& w,
                                     double sign) const {
    const Fold::List& l = bank_.fold.lists[list];
    const auto length = static_cast<size_t>(l.length);
    const auto count = static_cast<size_t>(Fold::pairs(l, choice.first_alone));
    const Pairs pairs = pairs_of(list, choice.first_alone);
    std::vector<double> folded;
    for (size_t c = 0; c < channels_; ++c) {
      if (choice.first_alone) folded.push_back(w[c * length]);
      for (size_t p = c * count; p < (c + 1) * count; ++p) {
        folded.push_back(folded_weight(w, pairs[p], choice.first_factors[p], choice.second_factors[p], sign));
      }
      if (2 * count + choice.first_alone < length) folded.push_back(w[c * length + count + choice.first_alone]);
    }
    return folded;
  }

  size_t channels_;
  double tolerance_;
  std::vector<double> largest_, missed_;  // by filter
  std::vector<Group> groups_;             // by list
  Bank bank_;
  StopPoll stop_;
};

}  // namespace

bool may_fold(int64_t filters, int64_t channels, int64_t length) {
  constexpr int64_t kShortest = 8;
  constexpr int64_t kMostValues = int64_t{1} << 24;
  const int64_t values = channels * length;
  return length >= kShortest && values <= kMostValues && filters <= kMostValues &&
         filters * (values / 2) > kValueWork * values + kListWork;
}

template <class T>
Bank fold_filters(const T* weights, int64_t filters, int64_t channels, int64_t length) {
  Group all;
  std::vector<double> largest;
  const T* from = weights;
  StopPoll stop;
  for (int64_t f = 0; f < filters; ++f, from += channels * length) {
    std::vector<double> w;
    w.reserve(static_cast<size_t>(channels * length));
    double most = 0;
    const bool goes_on = in_pieces(channels * length, costs::kFoldWeightNs, stop, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const double x = w.emplace_back(from[i]);
        most = std::isnan(x) ? x : std::max(most, std::abs(x));
      }
    });
    if (!goes_on) return {};
    largest.push_back(most);
    all.add(static_cast<int32_t>(f), std::move(w));
  }
  constexpr double kUnit = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
  return Folder(channels, kUnit, std::move(largest)).fold(std::move(all), length);
}

template Bank fold_filters(const float* weights, int64_t filters, int64_t channels, int64_t length);
template Bank fold_filters(const double* weights, int64_t filters, int64_t channels, int64_t length);

}  // namespace treadle::kernels

#pragma once
// Folding halves the products of banks of filters that are symmetric or antisymmetric about a point, as those of a
// discrete Fourier or cosine transform are. Let i and j be mirrored positions. If some filters have w[j] = w[i] and
// others w[j] = -w[i], the former only need products with the sums x[i] + x[j], and the latter only products with the
// differences x[i] - x[j].
//
//   x[0..256), 258 filters  --split-->  129 sums, 129 filters    --split-->  65 sums, 65 filters ...
//                                                                            65 differences, 64 filters
//                                       129 differences, 129 filters  ...
//
// A window that all filters share need not be symmetric: with w[j] = +-r w[i], the sums and differences are made of
// x[i] and r x[j]. So the filters of a windowed transform split a second time, by even and odd frequencies, although
// half a window is not symmetric.
//
// Each mirrored weight was rounded to its type by itself, so two mirrored weights may differ a little. A split is
// allowed if all splits together move no weight by more than kWeightTolerance units of rounding (2^-24 in float32) of
// the filter's largest weight. A sum of k products rounds k times, each time by up to one unit of its current value.
// Sums that are split are much longer than the tolerance, and splitting makes them several times shorter, so results do
// not become less exact.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/stop.h"

namespace treadle::kernels {

// The name of this method of convolution.
inline constexpr std::string_view kFoldedMethod = "folded";

inline constexpr double kWeightTolerance = 4;

// How the inputs of a row of filters are split into sums and differences. A plain struct; sizes and positions count
// elements.
struct Fold {
  static constexpr int kMostSplits = 12, kMostLists = 2 * kMostSplits + 1;

  // A list of values for each channel; channels follow each other. List 0 is the input itself.
  struct List {
    int32_t length = 0;                     // values of one channel
    int32_t first_filter = 0, filters = 0;  // range in Bank::order: the filters that are multiplied by this list
    bool is_split = false;
  };
  // List `from` is split into a list of sums and a list of differences; -1 if no filter needs the list. Value i is
  // paired with value length - 1 - i or, if the first value has no partner, with length - i. A value without a partner
  // is in both lists.
  struct Split {
    int32_t from = 0, sums = -1, differences = -1;
    bool first_alone = false;
    int32_t factors = -1;  // offset in Bank::factors; -1: all factors are 1
  };

  int32_t channels = 1, filters = 0;
  int32_t list_count = 0, split_count = 0, factor_count = 0;
  std::array<List, kMostLists> lists;
  std::array<Split, kMostSplits> splits;
  int64_t work = 0, plain_work = 0;  // cost of a row, in products: with the splits, and without any

  double share() const { return static_cast<double>(work) / static_cast<double>(plain_work); }
  static int64_t pairs(const List& list, bool first_alone) { return (list.length - first_alone) / 2; }
  static int64_t folded_length(const List& list, bool first_alone) { return list.length - pairs(list, first_alone); }
};

// A fold with its numbers.
struct Bank {
  Fold fold;
  std::vector<int32_t> order;                // filters by list
  std::vector<double> factors;               // per split and channel: of the first partners, then of the second ones
  std::vector<std::vector<double>> weights;  // weights of filter order[i]: channels * length of its list
};

// Whether filters of these sizes could gain from folding.
bool may_fold(int64_t filters, int64_t channels, int64_t length);

// `weights`: [filters, channels, length]. If splitting does not pay, the fold has one list and no split. Ends early if
// it is told to stop; then was_stopped() is true and the bank must not be used.
template <class T>
Bank fold_filters(const T* weights, int64_t filters, int64_t channels, int64_t length);

}  // namespace treadle::kernels

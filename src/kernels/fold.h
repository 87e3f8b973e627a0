#pragma once
// Banks of filters that are symmetric or antisymmetric about a point, as a discrete Fourier or cosine transform's are,
// take half of the products: where w[j] = w[i] for the mirrored places i and j of some filters and w[j] = -w[i] for
// those of others, the former are products with the sums x[i] + x[j] alone, the latter with the differences.
//
//   x[0..256), 258 filters  --split-->  129 sums, 129 filters    --split-->  65 sums, 65 filters ...
//                                                                            65 differences, 64 filters
//                                       129 differences, 129 filters  ...
//
// A window that all filters have in common does not have to be symmetric: with w[j] = +-r w[i] the sums and differences
// are of x[i] and r x[j]. So the filters of a windowed transform split a second time, by even and odd frequencies,
// although a window's left half is not symmetric itself.
//
// Mirrored weights are rounded to their type one by one, so they may miss each other by a little. Let through is what
// moves no weight by more than kWeightTolerance units of rounding (2^-24 in float32) of the filter's largest weight,
// over all splits. A sum of k products rounds k times, each time by up to one such unit of what it has reached; the
// sums that split at all are much longer than the tolerance, and become several times shorter by splitting.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/stop.h"

namespace treadle::kernels {

// The name of the method of convolution.
inline constexpr std::string_view kFoldedMethod = "folded";

inline constexpr double kWeightTolerance = 4;

// What is done to the values that a row of filters' inputs consists of. Plain data; sizes and places count elements.
struct Fold {
  static constexpr int kMostSplits = 12, kMostLists = 2 * kMostSplits + 1;

  // Values for each channel, one channel behind the other. List 0 is the input itself.
  struct List {
    int32_t length = 0;                     // of a channel
    int32_t first_filter = 0, filters = 0;  // in Bank::order: those that are products with this list
    bool is_split = false;
  };
  // List `from` becomes the list of sums and the list of differences, -1: no filter wants it. Value i goes with value
  // length - 1 - i, or, where the first value has no partner, with length - i. A value without a partner is in both.
  struct Split {
    int32_t from = 0, sums = -1, differences = -1;
    bool first_alone = false;
    int32_t factors = -1;  // in Bank::factors, -1: all are 1
  };

  int32_t channels = 1, filters = 0;
  int32_t list_count = 0, split_count = 0, factor_count = 0;
  std::array<List, kMostLists> lists;
  std::array<Split, kMostSplits> splits;
  int64_t work = 0, plain_work = 0;  // of a row, in products: with the splits, and with none

  double share() const { return static_cast<double>(work) / static_cast<double>(plain_work); }
  static int64_t pairs(const List& list, bool first_alone) { return (list.length - first_alone) / 2; }
  static int64_t folded_length(const List& list, bool first_alone) { return list.length - pairs(list, first_alone); }
};

// A fold, and the numbers that go with it.
struct Bank {
  Fold fold;
  std::vector<int32_t> order;   // filters by list
  std::vector<double> factors;  // of a split, for each channel: those of the first partners, those of the second ones
  std::vector<std::vector<double>> weights;  // of order[i], channels * length of its list
};

// Whether filters of these sizes might gain at all.
bool may_fold(int64_t filters, int64_t channels, int64_t length);

// `weights` [filters, channels, length]. Where splitting does not pay, the fold has one list and no split. Ends early
// where it is told to stop: was_stopped() then says that the bank is of no use.
template <class T>
Bank fold_filters(const T* weights, int64_t filters, int64_t channels, int64_t length);

}  // namespace treadle::kernels

#include "jit/nest.h"

#include <algorithm>

namespace treadle::jit {

namespace {

using plan::ElementwiseCode;
using Broadcast = ElementwiseCode::Broadcast;

// For every boundary between dimensions, the distance in elements between neighbours in the outer dimension.
void add_boundaries(const Dims& dims, std::vector<int64_t>& boundaries) {
  int64_t elements = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    elements *= dims[d];
    boundaries.push_back(elements);
  }
}

// The stride of an input along the dimension whose neighbours are `boundary` elements apart.
int64_t stride_at(const ElementwiseCode::Input& input, int64_t boundary) {
  if (input.broadcast == Broadcast::kDense) return boundary;
  if (input.broadcast == Broadcast::kScalar) return 0;
  int64_t inside = 1;
  for (size_t d = input.dims.size(); d-- > 0;) {
    if (boundary < inside * input.dims[d]) return boundary / inside * input.strides[d];
    inside *= input.dims[d];
  }
  return 0;
}

bool merges(const Nest& nest, size_t d, const Numbers& apart) {
  if (std::find(apart.begin(), apart.end(), nest.result_strides()[d - 1]) != apart.end()) return false;
  return std::all_of(nest.strides.begin(), nest.strides.end(),
                     [&](const Numbers& s) { return s[d - 1] == s[d] * nest.sizes[d]; });
}

}  // namespace

std::optional<Nest> common_nest(const ElementwiseCode& code, const Numbers& apart) {
  std::vector<int64_t> boundaries{1, code.count};
  for (const auto& input : code.inputs) add_boundaries(input.dims, boundaries);
  boundaries.insert(boundaries.end(), apart.begin(), apart.end());
  std::sort(boundaries.begin(), boundaries.end());
  boundaries.erase(std::unique(boundaries.begin(), boundaries.end()), boundaries.end());
  Nest nest;
  for (size_t i = boundaries.size() - 1; i > 0; --i) {
    if (boundaries[i] % boundaries[i - 1] != 0) return std::nullopt;
    nest.sizes.push_back(boundaries[i] / boundaries[i - 1]);
  }
  if (nest.sizes.empty()) nest.sizes.push_back(1);
  for (const auto& input : code.inputs) {
    Numbers& strides = nest.strides.emplace_back();
    for (size_t i = boundaries.size() - 1; i > 0; --i) strides.push_back(stride_at(input, boundaries[i - 1]));
    if (strides.empty()) strides.push_back(0);
  }
  for (size_t d = nest.sizes.size(); d-- > 1;) {
    if (!merges(nest, d, apart)) continue;
    const auto at = static_cast<std::ptrdiff_t>(d);
    nest.sizes[d] *= nest.sizes[d - 1];
    nest.sizes.erase(nest.sizes.begin() + at - 1);
    for (Numbers& strides : nest.strides) strides.erase(strides.begin() + at - 1);
  }
  return nest;
}

void cut(Nest& nest, int64_t most) {
  nest.split = nest.sizes.size();
  int64_t inner = 1;
  while (nest.split > 0 && inner * nest.sizes[nest.split - 1] <= most) inner *= nest.sizes[--nest.split];
  if (nest.split == 0) return;
  const int64_t size = nest.sizes[nest.split - 1], largest = std::min(most / inner, size);
  nest.step = largest;
  if (inner == 1) return;  // whole vectors and a rest
  for (int64_t step = largest; step > largest / 2; --step) {
    if (size % step != 0) continue;
    nest.step = step;
    return;
  }
}

Numbers Nest::result_strides() const {
  Numbers result(sizes.size());
  int64_t elements = 1;
  for (size_t d = sizes.size(); d-- > 0; elements *= sizes[d]) result[d] = elements;
  return result;
}

int64_t Nest::tile_count(int64_t rows) const {
  int64_t count = split == 0 ? 1 : rows;
  for (size_t d = split; d < sizes.size(); ++d) count *= sizes[d];
  return count;
}

Numbers Nest::tile_numbers(const Numbers& along, int64_t rows) const {
  Numbers numbers{0};
  auto extend = [&](int64_t size, int64_t stride) {
    Numbers longer;
    longer.reserve(numbers.size() * static_cast<size_t>(size));
    for (const int64_t number : numbers) {
      for (int64_t i = 0; i < size; ++i) longer.push_back(number + i * stride);
    }
    numbers = std::move(longer);
  };
  if (split > 0) extend(rows, along[split - 1]);
  for (size_t d = split; d < sizes.size(); ++d) extend(sizes[d], along[d]);
  return numbers;
}

Numbers input_numbers(const ElementwiseCode::Input& input, int64_t count) {
  if (input.broadcast == Broadcast::kDense) return range(count);
  if (input.broadcast == Broadcast::kScalar) return Numbers(static_cast<size_t>(count), 0);
  Numbers numbers;
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, number = input.start;
    for (size_t d = input.dims.size(); d-- > 0;) {
      number += rest % input.dims[d] * input.strides[d];
      rest /= input.dims[d];
    }
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace treadle::jit

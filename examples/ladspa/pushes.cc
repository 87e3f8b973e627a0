#include "pushes.h"

#include <algorithm>
#include <stdexcept>

namespace {
constexpr int kFloat = 1;
constexpr int kBefore = 4;  // pushes that find room for states and results
}  // namespace

Pushes::Pushes(treadle::Stream stream, const std::string& input, const std::vector<int64_t>& dims, int64_t samples)
    : samples_(samples),
      chunk_(treadle::Value::tensor(kFloat, dims)),
      results_(stream.output_names().size()),
      stream_(std::move(stream)) {
  const char* const name = input.c_str();
  const treadle_value* const value = chunk_.get();
  std::fill_n(chunk(), treadle_tensor_count(value), 0.0f);
  treadle::check(treadle_stream_bind(stream_.get(), nullptr, &name, &value, 1, results_.data()));
  for (treadle_value* result : results_) held_.emplace_back(result);
  begin();
}

void Pushes::begin() {
  stream_.reset();
  std::fill_n(chunk(), treadle_tensor_count(chunk_.get()), 0.0f);
  // Results have one size from the push on that the model's look ahead has reached.
  const size_t late = samples_ > 0 ? (delay() + static_cast<size_t>(samples_) - 1) / static_cast<size_t>(samples_) : 0;
  for (size_t i = 0; i < late + kBefore; ++i) {
    if (!push()) throw std::runtime_error(failure());
  }
}

const float* Pushes::push() {
  if (failed_) return nullptr;
  failed_.reset(treadle_stream_step(stream_.get()));
  return failed_ ? nullptr : static_cast<const float*>(treadle_tensor_data(results_[0]));
}

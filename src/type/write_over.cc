#include "type/write_over.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/counted.h"

namespace treadle {

namespace {

bool fits(const AnyValue& place, const AnyValue& value) {
  if (!place.is_tensor() || !value.is_tensor()) return false;
  const Tensor &to = place.tensor(), &from = value.tensor();
  return to.type() == from.type() && to.dims() == from.dims() && to.exclusive();
}

}  // namespace

void write_over(AnyValue& place, AnyValue value) {
  if (!fits(place, value)) {
    place = std::move(value);
    return;
  }
  Tensor& to = place.tensor();
  const Tensor& from = value.tensor();
  if (from.type() == ElementType::kString) {
    std::ranges::copy(from.span<String>(), to.mutable_data<String>());
  } else if (from.byte_size() > 0) {
    std::memcpy(to.mutable_raw(), from.raw(), from.byte_size());
  }
}

}  // namespace treadle

#include "type/shared_tensor.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

#include "base/equal_bytes.h"
#include "base/no_fork.h"
#include "base/shared_range.h"

namespace treadle {

namespace {

constexpr size_t kSmallest = 1024;  // smaller tensors are not worth searching for

struct Kept {
  explicit Kept(const Tensor& first) : tensor(first), range(first.raw(), first.byte_size()) {}
  ~Kept();
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;

  std::string_view bytes() const { return {tensor.data<char>(), tensor.byte_size()}; }

  Tensor tensor;
  SharedRange range;
};

// Copies of parts of shared memory, by the part's place.
class Copies {
 public:
  struct Part {
    uint64_t range, offset;
    ElementType type;
    Dims dims;
    bool operator<(const Part& other) const {
      return std::tie(range, offset, type) < std::tie(other.range, other.offset, other.type) ||
             (std::tie(range, offset, type) == std::tie(other.range, other.offset, other.type) &&
              std::lexicographical_compare(dims.begin(), dims.end(), other.dims.begin(), other.dims.end()));
    }
  };

  std::shared_ptr<Kept> find(const Part& part) {
    const NoFork whole;
    const std::lock_guard lock(mutex_);
    const auto it = copies_.find(part);
    return it == copies_.end() ? nullptr : it->second.lock();
  }
  void add(Part part, const std::shared_ptr<Kept>& copy) {
    const NoFork whole;
    const std::lock_guard lock(mutex_);
    if (copies_.size() >= look_again_at_) {
      std::erase_if(copies_, [](const auto& entry) { return entry.second.expired(); });
      look_again_at_ = 2 * copies_.size() + kFew;
    }
    copies_.insert_or_assign(std::move(part), copy);
  }

 private:
  static constexpr size_t kFew = 64;

  std::mutex mutex_;
  std::map<Part, std::weak_ptr<Kept>> copies_;
  size_t look_again_at_ = kFew;  // at this number of entries, those of destroyed tensors are removed
};

// Neither is ever destroyed: tensors may be freed after all static objects.
EqualBytes<Kept>& kept_tensors() {
  static auto* const made = new EqualBytes<Kept>;
  return *made;
}
Copies& copies() {
  static auto* const made = new Copies;
  return *made;
}

Kept::~Kept() {
  kept_tensors().remove(*this);
}

BufferRef buffer_of(std::shared_ptr<Kept> kept) {
  auto* const data = const_cast<std::byte*>(kept->tensor.data<std::byte>());
  const size_t bytes = kept->tensor.byte_size();
  auto holder = std::make_unique<std::shared_ptr<Kept>>(std::move(kept));
  const auto drop = [](void* held) { delete static_cast<std::shared_ptr<Kept>*>(held); };
  BufferRef buffer = BufferRef::wrap(data, bytes, false, drop, holder.get());
  [[maybe_unused]] const auto* const owned = holder.release();  // the buffer owns it
  return buffer;
}

std::shared_ptr<Kept> kept_once(const Tensor& tensor) {
  const auto fits = [&](const Kept& kept) {
    return kept.tensor.type() == tensor.type() && kept.tensor.dims() == tensor.dims();
  };
  const std::string_view bytes(tensor.data<char>(), tensor.byte_size());
  return kept_tensors().find_or_add(bytes, fits, [&] { return std::make_shared<Kept>(tensor); });
}

Tensor reference_to(std::shared_ptr<Kept> kept) {
  const Tensor& tensor = kept->tensor;
  const void* data = tensor.raw();
  const ElementType type = tensor.type();
  Dims dims = tensor.dims();
  return Tensor::from_buffer(type, std::move(dims), buffer_of(std::move(kept)), data);
}

}  // namespace

Tensor shared(const Tensor& tensor) {
  if (!tensor.defined() || is_string(tensor.type()) || tensor.byte_size() < kSmallest) return tensor;
  if (range_offset(tensor.raw(), tensor.byte_size()).range != 0) return tensor;
  return reference_to(kept_once(tensor));
}

Result<Tensor> shared_copy(ElementType type, const Dims& dims, std::string_view source,
                           const std::function<Result<Tensor>()>& make) {
  const RangeOffset place = range_offset(source.data(), source.size());
  if (place.range == 0 || source.size() < kSmallest) return make();
  Copies::Part part{place.range, place.offset, type, dims};
  std::shared_ptr<Kept> kept = copies().find(part);
  if (!kept) {
    TREADLE_ASSIGN(const Tensor made, make());
    kept = kept_once(made);
    copies().add(std::move(part), kept);
  }
  return reference_to(std::move(kept));
}

}  // namespace treadle

// Contents of tensors: taken out of other files, zeros, one element, few digits.

#include <cmath>
#include <cstdlib>

#include "model/tensor_reader.h"
#include "reduce/step.h"
#include "reduce/tensors.h"
#include "type/make_tensor.h"

namespace treadle::reduce {

namespace {

class DataFiles : public Step {
 public:
  const char* name() const override { return "data in other files"; }
  size_t count(wire::ModelProto& model) const override {
    size_t count = 0;
    for (const wire::TensorProto* tensor : tensors_of(model)) count += is_external(*tensor);
    return count;
  }
  bool apply(Candidate& candidate, size_t first, size_t last, size_t) const override {
    if (candidate.facts.folder.empty()) return false;
    model::TensorReader reader(wire::MappedFile::borrow({}), model::TensorReader::Folder(candidate.facts.folder));
    size_t index = 0, bytes = 0;
    for (wire::TensorProto* tensor : tensors_of(candidate.model)) {
      if (!is_external(*tensor)) continue;
      const size_t i = index++;
      if (i < first || i >= last) continue;
      auto contents = reader.read(*tensor);
      if (!contents.ok()) return false;
      bytes += contents->byte_size();
      if (bytes > kMostBytes) return false;
      write(std::move(*contents), *tensor, candidate);
    }
    return true;
  }

 private:
  static constexpr size_t kMostBytes = size_t{1} << 30;  // a model has at most twice as many
};

class Constants : public Step {
 public:
  const char* name() const override { return "constants"; }
  size_t ways() const override { return 3; }
  size_t count(wire::ModelProto& model) const override { return tensors_of(model).size(); }
  bool apply(Candidate& candidate, size_t first, size_t last, size_t way) const override {
    const std::vector<wire::TensorProto*> tensors = tensors_of(candidate.model);
    bool changed = false;
    for (size_t i = first; i < last; ++i) changed |= change(*tensors[i], way, candidate);
    return changed;
  }

 private:
  enum Way : uint8_t { kZeros, kOneElement, kFewDigits };

  static bool change(wire::TensorProto& tensor, size_t way, Candidate& candidate) {
    if (way == kZeros) return make_zeros(tensor, candidate);
    std::optional<Tensor> contents = read(tensor);
    if (!contents) return false;
    if (way == kOneElement) {
      const std::vector<int64_t> ones(contents->dims().size(), 1);
      if (contents->element_count() < 2) return false;
      write(first_part(*contents, ones), tensor, candidate);
      return true;
    }
    return round_digits(*contents, tensor, candidate);
  }

  static bool make_zeros(wire::TensorProto& tensor, Candidate& candidate) {
    const wire::TypeProto type = type_of(tensor, candidate.arena);
    const wire::TensorProto zeros = zeros_of(&type, tensor.name, candidate.arena);
    if (!is_external(tensor) && zeros.raw_data && tensor.raw_data == zeros.raw_data) return false;
    tensor = zeros;
    return true;
  }

  // Floating-point elements to one digit.
  static bool round_digits(const Tensor& contents, wire::TensorProto& tensor, Candidate& candidate) {
    if (contents.type() == ElementType::kFloat) return round<float>(contents, tensor, candidate);
    if (contents.type() == ElementType::kDouble) return round<double>(contents, tensor, candidate);
    return false;
  }
  template <class T>
  static bool round(const Tensor& contents, wire::TensorProto& tensor, Candidate& candidate) {
    Tensor rounded = make_tensor(contents.type(), contents.dims());
    bool changed = false;
    for (int64_t i = 0; i < contents.element_count(); ++i) {
      const T element = contents.data<T>()[i];
      const auto other = static_cast<T>(std::strtod(fmt::format("{:.0e}", element).c_str(), nullptr));
      changed |= std::isfinite(element) && other != element;
      rounded.mutable_data<T>()[i] = std::isfinite(element) ? other : element;
    }
    if (changed) write(std::move(rounded), tensor, candidate);
    return changed;
  }
};

}  // namespace

void add_constant_steps(Steps& steps) {
  steps.push_back(std::make_unique<DataFiles>());
  steps.push_back(std::make_unique<Constants>());
}

}  // namespace treadle::reduce

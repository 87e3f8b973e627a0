#include "fused_node.h"

#include <algorithm>

#include "tensors.h"

namespace treadle::provider {

namespace {

// Handles that are freed together.
struct Handles {
  explicit Handles(size_t count) : values(count) {}
  ~Handles() {
    for (treadle_value* value : values) treadle_value_free(value);
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  std::vector<treadle_value*> values;
};

OrtValue* output_of(OrtKernelContext* context, size_t index, const int64_t* dims, size_t rank) {
  OrtValue* value = nullptr;
  check(ort().KernelContext_GetOutput(context, index, dims, rank, &value));
  return value;
}

}  // namespace

FusedNode::FusedNode(Session session, const Settings& settings, Threads* threads, const Values& inputs,
                     const Values& outputs)
    : OrtNodeComputeInfo{
          .ort_version_supported = kOldestVersion,
          .CreateState = [](OrtNodeComputeInfo* self, OrtNodeComputeContext*, void** state) -> OrtStatus* {
            *state = self;
            return nullptr;
          },
          .Compute =
              [](OrtNodeComputeInfo* self, void*, OrtKernelContext* context) {
                return guarded([&] { static_cast<FusedNode*>(self)->run(context); });
              },
          .ReleaseState = [](OrtNodeComputeInfo*, void*) {}},
      session_(std::move(session)),
      settings_(settings),
      threads_(threads) {
  for (size_t i = 0; i < treadle_session_count(session_.get(), TREADLE_INPUT); ++i) {
    inputs_.emplace_back(treadle_session_name(session_.get(), TREADLE_INPUT, i));
    const auto found = std::find_if(inputs.begin(), inputs.end(),
                                    [&](const OrtValueInfo* input) { return name_of(input) == inputs_.back(); });
    if (found == inputs.end()) {
      throw Failure(ORT_INVALID_GRAPH,
                    "onnxruntime does not hand '" + inputs_.back() + "' to what treadle has claimed");
    }
    positions_.push_back(static_cast<size_t>(found - inputs.begin()));
  }
  for (const OrtValueInfo* output : outputs) {
    Output& made = outputs_.emplace_back(Output{.name = name_of(output)});
    for (size_t i = 0; i < treadle_session_count(session_.get(), TREADLE_OUTPUT); ++i) {
      if (made.name != treadle_session_name(session_.get(), TREADLE_OUTPUT, i)) continue;
      const treadle_type* type = treadle_session_type(session_.get(), TREADLE_OUTPUT, i);
      made.element = treadle_type_element(type);
      for (int64_t axis = 0; axis < treadle_type_rank(type); ++axis) {
        made.dims.push_back(treadle_type_dim(type, axis));
      }
      made.sized = treadle_type_rank(type) >= 0 && made.element != ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING &&
                   std::none_of(made.dims.begin(), made.dims.end(), [](int64_t size) { return size < 0; });
    }
  }
  for (const std::string& name : inputs_) input_names_.push_back(name.c_str());
  for (const Output& output : outputs_) output_names_.push_back(output.name.c_str());
}

void FusedNode::run(OrtKernelContext* context) const {
  std::call_once(first_run_, [&] {
    if (threads_) treadle_session_set_threads(session_.get(), threads_->of(context));
  });
  Handles inputs(inputs_.size()), results(outputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const OrtValue* value = nullptr;
    check(ort().KernelContext_GetInput(context, positions_[i], &value));
    if (value) inputs.values[i] = lend(value).release();
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Output& output = outputs_[i];
    if (!output.sized) continue;
    OrtValue* value = output_of(context, i, output.dims.data(), output.dims.size());
    if (value) results.values[i] = lend_writable(value, output.element, output.dims).release();
  }
  const RunOptions limits = settings_.run_options();
  check(treadle_session_run(session_.get(), limits.get(), input_names_.data(), inputs.values.data(), inputs_.size(),
                            output_names_.data(), outputs_.size(), results.values.data()));
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const treadle_value* result = results.values[i];
    OrtValue* value = output_of(context, i, treadle_tensor_dims(result), treadle_tensor_rank(result));
    if (value) copy_to(value, result);  // NULL: not requested
  }
}

}  // namespace treadle::provider

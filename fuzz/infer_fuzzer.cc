// Bytes as a model whose types are inferred: by our rules, by onnx's, and as planning does it. Inference ends, refuses
// with a place or writes types that read back; and what it wrote it agrees with.

#include "fuzz/support/found.h"
#include "fuzz/support/model_hooks.h"
#include "infer/inference.h"
#include "model/annotate.h"
#include "model/import.h"
#include "model/text_file.h"

namespace {

using namespace treadle;  // NOLINT(google-build-using-namespace)

// The model with its types; empty when it was refused. `explain`: say why.
std::string infer(const std::shared_ptr<wire::MappedFile>& file, const InferenceOptions& inference_options,
                  bool explain = false) {
  std::vector<Status> broken;
  model::ImportOptions options;
  options.max_inlined_nodes = 1000;
  options.broken = &broken;
  options.as_onnx = inference_options.rules == Rules::kOnnx;
  options.for_types = options.unique_paths = inference_options.keep_declared;  // not for planning
  auto parsed = wire::parse_model(file->bytes());
  if (!parsed.ok()) return {};
  auto graph = model::import_model(**parsed, file, options);
  if (!graph.ok()) return {};
  Inference inference(inference_options);
  const Status status = inference.infer((*graph)->top());
  if (!status.ok()) {
    fuzz::expect_sound(status);
    fuzz::expect(!status.place().empty(), "an error without a place: " + status.to_string());
    if (inference_options.strict) {
      if (explain) fmt::print(stderr, "{}\n", status.to_string());
      return {};
    }
  }
  auto typed = model::annotate_types(*parsed, file->bytes(), **graph);
  if (!typed.ok()) fuzz::found("types that cannot be written: " + typed.error().to_string());
  // Where nodes were left out, names may stand for several values, and there are no types to agree on.
  return broken.empty() ? typed->to_string() : std::string();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto file = model::binary_model(wire::MappedFile::borrow({reinterpret_cast<const char*>(data), size}));
  if (!file.ok()) return 0;
  InferenceOptions ours;
  ours.check_types = ours.contradictions_fail = ours.name_unknowns = true;
  const std::string typed = infer(*file, ours);
  if (!typed.empty()) {
    fuzz::expect(!infer(wire::MappedFile::borrow(typed), ours, true).empty(),
                 "inferred types that inference contradicts");
  }

  InferenceOptions as_onnx;
  as_onnx.rules = Rules::kOnnx;
  as_onnx.strict = false;
  infer(*file, as_onnx);

  InferenceOptions for_planning;
  for_planning.keep_declared = for_planning.trust_containers = false;
  infer(*file, for_planning);
  return 0;
}

#include <cstdlib>

#include "api/handles.h"
#include "api/model_file.h"
#include "infer/inference.h"
#include "model/annotate.h"
#include "model/import.h"
#include "model/text_file.h"
#include "op/print.h"

using namespace treadle;       // NOLINT(google-build-using-namespace)
using namespace treadle::api;  // NOLINT(google-build-using-namespace)

namespace {

struct Imported {
  std::shared_ptr<wire::MappedFile> file;  // for a binary model
  wire::Parsed<wire::ModelProto> model;
  std::unique_ptr<ir::Graph> graph;
};

// Before any run, an operator's error about its arguments is an error of the model.
Status as_model_error(const Status& status) {
  const Code code = status.code() == Code::kInvalidArgument ? Code::kInvalidModel : status.code();
  return Status(code, status.message()).in(status.place());
}

// Reads and resolves a model, and infers the types of all values. `for_types`: contents of large weights are not
// needed.
Result<Imported> import_and_infer(const char* path, const void* bytes, size_t size, unsigned flags, bool for_types) {
  TREADLE_ASSIGN(const std::shared_ptr<wire::MappedFile> written, model_file(path, bytes, size));
  Imported result;
  TREADLE_ASSIGN(result.file, model::binary_model(written));
  model::ImportOptions options;
  std::vector<Status> broken;
  if (!(flags & TREADLE_INFER_RUNNABLE)) options.broken = &broken;
  options.as_onnx = (flags & TREADLE_INFER_AS_ONNX) != 0;
  options.for_types = options.unique_paths = for_types;
  auto parsed = wire::parse_model(result.file->bytes());
  TREADLE_TRY(result.file->unchanged());
  if (!parsed.ok()) return model::in_file(std::move(parsed).status(), *written);
  result.model = std::move(*parsed);
  auto graph = model::import_model(*result.model, result.file, options);
  if (!graph.ok()) return model::in_file(std::move(graph).status(), *written);
  result.graph = std::move(*graph);
  const bool strict = !(flags & TREADLE_INFER_LENIENT);
  if (strict && !broken.empty()) return model::in_file(as_model_error(broken[0]), *written);
  Inference inference({
      .rules = flags & TREADLE_INFER_AS_ONNX ? Rules::kOnnx : Rules::kTreadle,
      .propagate = !(flags & TREADLE_INFER_NO_CONTENTS),
      .check_types = (flags & TREADLE_INFER_TYPES) != 0,
      .contradictions_fail = true,
      .strict = strict,
      .sizes_wait = !(flags & TREADLE_INFER_AS_ONNX),
      .name_unknowns = true,
  });
  // An input with a default counts as its default.
  const ir::Region& top = result.graph->top();
  for (size_t i = 0; i < result.graph->input_defaults.size(); ++i) {
    if (result.graph->input_defaults[i].defined())
      inference.set_constant(top.inputs[i], result.graph->input_defaults[i]);
  }
  Status status = inference.infer(result.graph->top());
  if (!status.ok()) return model::in_file(as_model_error(status), *written);
  return result;
}

}  // namespace

extern "C" {

treadle_status* treadle_model_infer(const char* path, const void* bytes, size_t size, unsigned flags, char** typed,
                                    size_t* typed_size) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"typed", typed}, {"typed_size", typed_size}}));
    TREADLE_ASSIGN(Imported imported, import_and_infer(path, bytes, size, flags, true));
    TREADLE_ASSIGN(const wire::Pieces pieces,
                   model::annotate_types(imported.model, imported.file->bytes(), *imported.graph));
    char* const text = static_cast<char*>(std::malloc(pieces.size() + 1));
    if (!text) return error(Code::kLimit, "no memory for {} bytes of a model", pieces.size());
    pieces.copy_to(text);
    text[pieces.size()] = 0;
    if (Status status = imported.file->unchanged(); !status.ok()) {
      std::free(text);
      return status;
    }
    *typed = text;
    *typed_size = pieces.size();
    return {};
  });
}

treadle_status* treadle_model_tree(const char* path, const void* bytes, size_t size, unsigned flags, char** text) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"text", text}}));
    TREADLE_ASSIGN(const Imported imported, import_and_infer(path, bytes, size, flags, false));
    return give_text(print(*imported.graph), text);
  });
}

}  // extern "C"

#include "api/handles.h"
#include "check/inference.h"
#include "model/annotate.h"
#include "model/import.h"
#include "model/text_file.h"
#include "op/print.h"

using namespace treadle;       // NOLINT(google-build-using-namespace)
using namespace treadle::api;  // NOLINT(google-build-using-namespace)

namespace {

struct Imported {
  std::shared_ptr<wire::MappedFile> file;  // binary
  std::unique_ptr<ir::Graph> graph;
};

// What an operator reports as arguments that do not fit is, before any run, a fault of the model.
Status as_model_error(const Status& status) {
  const Code code = status.code() == Code::kInvalidArgument ? Code::kInvalidModel : status.code();
  return Status(code, status.message()).in(status.place());
}

// Read, resolved, and with the types of every value inferred.
Result<Imported> import_and_infer(const char* path, const void* bytes, size_t size, unsigned flags) {
  std::shared_ptr<wire::MappedFile> written;
  if (path) {
    TREADLE_ASSIGN(written, wire::MappedFile::open(path));
  } else {
    TREADLE_TRY(require(bytes || size == 0, "a model is missing"));
    written = wire::MappedFile::own(std::string(static_cast<const char*>(bytes), size));
  }
  Imported result;
  TREADLE_ASSIGN(result.file, model::binary_model(written));
  model::ImportOptions options;
  std::vector<Status> broken;
  if (!(flags & TREADLE_INFER_RUNNABLE)) options.broken = &broken;
  options.as_onnx = (flags & TREADLE_INFER_AS_ONNX) != 0;
  auto graph = model::import_model(result.file, options);
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
      .name_unknowns = true,
  });
  // Inputs with defaults are taken for what they are by default.
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
    TREADLE_TRY(require(typed && typed_size, "a place for the model is missing"));
    TREADLE_ASSIGN(const Imported imported, import_and_infer(path, bytes, size, flags));
    TREADLE_ASSIGN(const std::string text, model::annotate_types(*imported.file, *imported.graph));
    TREADLE_TRY(give_text(text, typed));
    *typed_size = text.size();
    return {};
  });
}

treadle_status* treadle_model_tree(const char* path, const void* bytes, size_t size, unsigned flags, char** text) {
  return guarded([&]() -> Status {
    TREADLE_TRY(require(text, "a place for the text is missing"));
    TREADLE_ASSIGN(const Imported imported, import_and_infer(path, bytes, size, flags));
    return give_text(print(*imported.graph), text);
  });
}

}  // extern "C"

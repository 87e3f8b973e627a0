// Inputs and outputs that stay bound to a session between runs.

#include <algorithm>
#include <cstring>

#include "memory.h"
#include "session.h"

struct OrtIoBinding {
  struct Bound {
    std::string name;
    OrtValue value;
    bool made_by_run = false;  // an output bound to a device only, for which the run makes the value
  };

  OrtSession* session;
  std::vector<Bound> inputs, outputs;
};

namespace treadle::dropin {

namespace {

void bind(std::vector<OrtIoBinding::Bound>& bound, const char* name, OrtValue value, bool made_by_run) {
  require(name, "the name of what is bound is missing");
  const auto found = std::find_if(bound.begin(), bound.end(), [&](const auto& b) { return b.name == name; });
  if (found == bound.end()) {
    bound.push_back({name, std::move(value), made_by_run});
  } else {
    found->value = std::move(value);
    found->made_by_run = made_by_run;
  }
}

// Only names of inputs are checked here. A run checks those of outputs, as in onnxruntime.
void require_input(const OrtSession& session, const char* name) {
  for (const treadle_role role : {TREADLE_INPUT, TREADLE_OVERRIDABLE}) {
    for (size_t i = 0; i < treadle_session_count(session.engine.get(), role); ++i) {
      if (std::strcmp(treadle_session_name(session.engine.get(), role, i), name) == 0) return;
    }
  }
  refuse_argument("the model has no input '" + std::string(name) + "'");
}

}  // namespace

namespace api {

void CreateIoBinding(OrtSession* session, OrtIoBinding** out) {
  *out = new OrtIoBinding{.session = session, .inputs = {}, .outputs = {}};
}

void ReleaseIoBinding(OrtIoBinding* binding) {
  delete binding;
}

void BindInput(OrtIoBinding* binding, const char* name, const OrtValue* value) {
  require(name && value, "a name and a value are bound");
  require_input(*binding->session, name);
  bind(binding->inputs, name, value->share(), false);
}

void BindOutput(OrtIoBinding* binding, const char* name, const OrtValue* value) {
  require(name && value, "a name and a value are bound");
  // The client gives the memory of bound values.
  bind(binding->outputs, name, const_cast<OrtValue*>(value)->place(), false);
}

void BindOutputToDevice(OrtIoBinding* binding, const char* name, const OrtMemoryInfo* memory) {
  require_cpu(memory);
  require(name, "the name of an output is missing");
  bind(binding->outputs, name, OrtValue(), true);
}

void ClearBoundInputs(OrtIoBinding* binding) {
  binding->inputs.clear();
}

void ClearBoundOutputs(OrtIoBinding* binding) {
  binding->outputs.clear();
}

void RunWithBinding(OrtSession* session, const OrtRunOptions* options, const OrtIoBinding* given) {
  // The client changes bindings; a run adds results only.
  auto* const binding = const_cast<OrtIoBinding*>(given);
  std::vector<const char*> names, output_names;
  std::vector<const OrtValue*> inputs;
  std::vector<OrtValue*> outputs;
  for (const auto& input : binding->inputs) names.push_back(input.name.c_str()), inputs.push_back(&input.value);
  for (auto& output : binding->outputs) {
    output_names.push_back(output.name.c_str());
    outputs.push_back(output.made_by_run ? nullptr : &output.value);
  }
  session->run(options, names.data(), inputs.data(), inputs.size(), output_names.data(), outputs.size(),
               outputs.data());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!binding->outputs[i].made_by_run) continue;
    binding->outputs[i].value = std::move(*outputs[i]);
    delete outputs[i];
  }
}

// All memory is the processor's, so a finished run has nothing to synchronise.
void SynchronizeBoundInputs(OrtIoBinding*) {}
void SynchronizeBoundOutputs(OrtIoBinding*) {}

// All names in one array of characters.
void GetBoundOutputNames(const OrtIoBinding* binding, OrtAllocator* allocator, char** names, size_t** lengths,
                         size_t* count) {
  *count = binding->outputs.size();
  *names = nullptr;
  *lengths = nullptr;
  if (*count == 0) return;
  std::string all;
  for (const auto& output : binding->outputs) all += output.name;
  size_t* const sizes = static_cast<size_t*>(allocate(allocator, *count * sizeof(size_t)));
  for (size_t i = 0; i < *count; ++i) sizes[i] = binding->outputs[i].name.size();
  *lengths = sizes;
  *names = copy_text(allocator, all);
}

void GetBoundOutputValues(const OrtIoBinding* binding, OrtAllocator* allocator, OrtValue*** values, size_t* count) {
  *count = binding->outputs.size();
  *values = nullptr;
  if (*count == 0) return;
  std::vector<std::unique_ptr<OrtValue>> made;
  for (const auto& output : binding->outputs) made.push_back(std::make_unique<OrtValue>(output.value.share()));
  auto** const out = static_cast<OrtValue**>(allocate(allocator, *count * sizeof(OrtValue*)));
  for (size_t i = 0; i < *count; ++i) out[i] = made[i].release();
  *values = out;
}

}  // namespace api

}  // namespace treadle::dropin

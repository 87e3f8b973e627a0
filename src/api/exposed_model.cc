#include "session/exposed_model.h"

#include <cstdlib>

#include "api/handles.h"
#include "api/model_file.h"
#include "base/json.h"
#include "model/export.h"
#include "model/import.h"
#include "model/text_file.h"
#include "op/loop_view.h"

using namespace treadle;       // NOLINT(google-build-using-namespace)
using namespace treadle::api;  // NOLINT(google-build-using-namespace)

namespace {

using session::ExposedValue;

Result<std::unique_ptr<ir::Graph>> read_graph(const char* path, const void* bytes, size_t size) {
  TREADLE_ASSIGN(const std::shared_ptr<wire::MappedFile> written, model_file(path, bytes, size));
  TREADLE_ASSIGN(const std::shared_ptr<wire::MappedFile> file, model::binary_model(written));
  auto graph = model::import_model(file);
  if (!graph.ok()) return model::in_file(std::move(graph).status(), *written);
  return graph;
}

std::string json_texts(const std::vector<std::string>& texts) {
  std::vector<std::string> items;
  for (const std::string& text : texts) items.push_back(json_text(text));
  return json_array(items);
}

std::string sizes_of(const Type& type) {
  if (!type.has_shape) return "null";
  std::vector<std::string> sizes;
  for (const Dim& size : type.shape) sizes.push_back(size.is_known() ? std::to_string(size.value()) : "null");
  return json_array(sizes);
}

std::string around_of(const session::InnerValue& inner) {
  std::vector<std::string> items;
  for (const session::Enclosing& around : inner.around) {
    JsonObject item;
    item.text("node", around.node).text("op", around.op).text("attribute", around.attribute);
    items.push_back(item.str());
  }
  return json_array(items);
}

// Whether a loop hands the value to its next iteration.
bool is_state(const ir::Value& value) {
  const ir::Region* const body = value.owner;
  if (!value.producer || !body || !body->parent_node || !is_loop(*body->parent_node)) return false;
  const auto loop = LoopView::read(*body->parent_node);
  for (size_t i = 0; loop.ok() && i < loop->states(); ++i) {
    if (loop->state(i).after == &value) return true;
  }
  return false;
}

std::string to_json(const ExposedValue& exposed) {
  const ir::Value& value = *exposed.inner.value;
  std::vector<std::string> inputs, place;
  if (value.producer) {
    for (const ir::Value* input : value.producer->inputs) {
      inputs.push_back(input && !input->is_constant() ? session::name_of(*input) : "");
    }
  }
  for (const int64_t position : exposed.inner.place) place.push_back(std::to_string(position));
  JsonObject json;
  json.text("name", exposed.inner.name);
  json.text("node", value.producer ? value.producer->name.view() : "");
  json.text("op", value.producer ? std::string_view(value.producer->op->name) : "");
  json.text("type", exposed.type.to_string()).raw("sizes", sizes_of(exposed.type));
  json.raw("inputs", json_texts(inputs)).raw("around", around_of(exposed.inner)).raw("place", json_array(place));
  const auto add = [&](std::string_view key, const std::optional<size_t>& at) {
    json.raw(key, at ? std::to_string(*at) : "null");
  };
  json.boolean("is_state", is_state(value));
  add("output", exposed.output);
  add("log_at", exposed.log_at);
  add("ran", exposed.ran);
  return json.text("left_out", exposed.left_out).str();
}

}  // namespace

extern "C" {

treadle_status* treadle_model_expose(const char* path, const void* bytes, size_t size, const char* const* names,
                                     const treadle_value* const* values, size_t count, const char* const* wanted,
                                     size_t wanted_count, char** model, size_t* model_size, char** json) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"model", model}, {"model_size", model_size}, {"json", json}}));
    TREADLE_TRY(need_elements("wanted", wanted, wanted_count));
    TREADLE_ASSIGN(const std::vector<Feed> feeds, make_feeds(names, values, count));
    TREADLE_ASSIGN(const std::unique_ptr<ir::Graph> graph, read_graph(path, bytes, size));
    const std::vector<std::string> chosen(wanted, wanted + wanted_count);
    TREADLE_ASSIGN(const std::vector<ExposedValue> exposed, session::expose(*graph, feeds, chosen));
    TREADLE_ASSIGN(const std::string exported, model::export_model(*graph));
    std::vector<std::string> items;
    for (const ExposedValue& value : exposed) items.push_back(to_json(value));
    return give_model(exported, json_array(items), model, model_size, json);
  });
}

treadle_status* treadle_model_node(const char* path, const void* bytes, size_t size, const char* const* names,
                                   const treadle_value* const* values, size_t count, const char* node, char** model,
                                   size_t* model_size, char** json) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"node", node}, {"model", model}, {"model_size", model_size}, {"json", json}}));
    TREADLE_ASSIGN(const std::vector<Feed> feeds, make_feeds(names, values, count));
    TREADLE_ASSIGN(const std::unique_ptr<ir::Graph> graph, read_graph(path, bytes, size));
    TREADLE_ASSIGN(const std::vector<session::ReadValue> read, session::leave_node(*graph, feeds, node));
    std::vector<std::string> inputs;
    for (const session::ReadValue& value : read) inputs.push_back(value.name);
    TREADLE_ASSIGN(const std::string exported, model::export_model(*graph));
    return give_model(exported, json_texts(inputs), model, model_size, json);
  });
}

}  // extern "C"

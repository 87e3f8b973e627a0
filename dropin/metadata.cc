// Metadata of a model.

#include <cstdlib>
#include <limits>

#include "memory.h"
#include "session.h"

struct OrtModelMetadata {
  std::string producer, graph_name, graph_description, domain, description;
  int64_t version = std::numeric_limits<int64_t>::max();  // for a model without a version
  OrtKeyValuePairs properties;
};

namespace treadle::dropin {

namespace {

std::string field_of(const treadle_session* session, const char* name) {
  const std::unique_ptr<char, void (*)(void*)> text(treadle_session_metadata(session, name), treadle_free);
  return text ? text.get() : "";
}

}  // namespace

namespace api {

void SessionGetModelMetadata(const OrtSession* session, OrtModelMetadata** out) {
  const treadle_session* const engine = session->engine.get();
  auto made = std::make_unique<OrtModelMetadata>();
  made->producer = field_of(engine, "producer_name");
  made->graph_name = field_of(engine, "graph_name");
  made->graph_description = field_of(engine, "graph_description");
  made->domain = field_of(engine, "domain");
  made->description = field_of(engine, "description");
  const std::string version = field_of(engine, "model_version");
  if (!version.empty()) made->version = std::strtoll(version.c_str(), nullptr, 10);
  for (size_t i = 0; i < treadle_session_property_count(engine); ++i) {
    made->properties.set(treadle_session_property_key(engine, i), treadle_session_property_value(engine, i));
  }
  *out = made.release();
}

void ReleaseModelMetadata(OrtModelMetadata* metadata) {
  delete metadata;
}

void ModelMetadataGetProducerName(const OrtModelMetadata* metadata, OrtAllocator* allocator, char** out) {
  *out = copy_text(allocator, metadata->producer);
}
void ModelMetadataGetGraphName(const OrtModelMetadata* metadata, OrtAllocator* allocator, char** out) {
  *out = copy_text(allocator, metadata->graph_name);
}
void ModelMetadataGetGraphDescription(const OrtModelMetadata* metadata, OrtAllocator* allocator, char** out) {
  *out = copy_text(allocator, metadata->graph_description);
}
void ModelMetadataGetDomain(const OrtModelMetadata* metadata, OrtAllocator* allocator, char** out) {
  *out = copy_text(allocator, metadata->domain);
}
void ModelMetadataGetDescription(const OrtModelMetadata* metadata, OrtAllocator* allocator, char** out) {
  *out = copy_text(allocator, metadata->description);
}
void ModelMetadataGetVersion(const OrtModelMetadata* metadata, int64_t* out) {
  *out = metadata->version;
}

// An unknown key is not an error: its value is NULL.
void ModelMetadataLookupCustomMetadataMap(const OrtModelMetadata* metadata, OrtAllocator* allocator, const char* key,
                                          char** out) {
  const std::string* const value = metadata->properties.find(key);
  *out = value ? copy_text(allocator, *value) : nullptr;
}

void ModelMetadataGetCustomMetadataMapKeys(const OrtModelMetadata* metadata, OrtAllocator* allocator, char*** keys,
                                           int64_t* count) {
  const std::vector<std::string>& names = metadata->properties.keys;
  *count = static_cast<int64_t>(names.size());
  *keys = nullptr;
  if (names.empty()) return;
  char** const copies = static_cast<char**>(allocate(allocator, names.size() * sizeof(char*)));
  for (size_t i = 0; i < names.size(); ++i) copies[i] = copy_text(allocator, names[i]);
  *keys = copies;
}

}  // namespace api

}  // namespace treadle::dropin

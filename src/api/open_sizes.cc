#include "open/open_sizes.h"

#include "api/handles.h"
#include "api/model_file.h"
#include "base/json.h"
#include "model/text_file.h"

using namespace treadle;       // NOLINT(google-build-using-namespace)
using namespace treadle::api;  // NOLINT(google-build-using-namespace)

namespace {

std::string json_of(const open::Opened& opened) {
  std::vector<std::string> sizes, changes;
  for (const open::Opening& size : opened.sizes) {
    sizes.push_back(JsonObject()
                        .text("input", size.input)
                        .integer("axis", size.axis)
                        .text("symbol", size.symbol)
                        .integer("size", size.size)
                        .str());
  }
  for (const std::string& change : opened.changes) changes.push_back(json_text(change));
  return JsonObject().raw("sizes", json_array(sizes)).raw("changes", json_array(changes)).str();
}

}  // namespace

extern "C" {

treadle_status* treadle_model_open_sizes(const char* path, const void* bytes, size_t size, const char* const* sizes,
                                         size_t count, char** opened, size_t* opened_size, char** json) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"opened", opened}, {"opened_size", opened_size}, {"json", json}}));
    TREADLE_TRY(need_elements("sizes", sizes, count));
    std::vector<open::Opening> openings;
    for (size_t i = 0; i < count; ++i) {
      TREADLE_ASSIGN(openings.emplace_back(), open::read_opening(sizes[i]));
    }
    TREADLE_ASSIGN(const std::shared_ptr<wire::MappedFile> written, model_file(path, bytes, size));
    TREADLE_ASSIGN(const std::shared_ptr<wire::MappedFile> file, model::binary_model(written));
    auto result = open::open_sizes(file, folder_of(path), std::move(openings));
    if (!result.ok()) return model::in_file(std::move(result).status(), *written);
    return give_model(result->bytes, json_of(*result), opened, opened_size, json);
  });
}

}  // extern "C"

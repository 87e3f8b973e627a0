#include <cstdlib>

#include "api/handles.h"
#include "api/model_file.h"
#include "model/text_file.h"
#include "reduce/search.h"

using namespace treadle;       // NOLINT(google-build-using-namespace)
using namespace treadle::api;  // NOLINT(google-build-using-namespace)

namespace {

using FailsOfCaller = treadle_verdict (*)(void* context, const void* candidate, size_t candidate_size,
                                          const treadle_reduction* so_far);

reduce::Fails told_by(FailsOfCaller fails, void* context) {
  if (!fails) return [](std::string_view, const reduce::Progress&) { return reduce::Verdict::kPasses; };
  return [=](std::string_view bytes, const reduce::Progress& progress) {
    const treadle_reduction so_far = {.step = progress.step,
                                      .attempts = progress.attempts,
                                      .nodes = progress.nodes,
                                      .bodies = progress.bodies,
                                      .bytes = progress.bytes,
                                      .data_tensors = progress.data_tensors};
    switch (fails(context, bytes.data(), bytes.size(), &so_far)) {
      case TREADLE_FAILS:
        return reduce::Verdict::kFails;
      case TREADLE_STOP:
        return reduce::Verdict::kStop;
      default:
        return reduce::Verdict::kPasses;
    }
  };
}

}  // namespace

extern "C" {

treadle_status* treadle_model_reduce(const char* path, const void* bytes, size_t size, FailsOfCaller fails,
                                     void* context, size_t attempts, size_t jobs, char** reduced,
                                     size_t* reduced_size) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"reduced", reduced}, {"reduced_size", reduced_size}, {"bytes", path || bytes || size == 0}}));
    TREADLE_ASSIGN(const std::shared_ptr<wire::MappedFile> written, model_file(path, bytes, size));
    TREADLE_ASSIGN(const std::shared_ptr<wire::MappedFile> file, model::binary_model(written));
    const reduce::Options options = {.attempts = attempts, .jobs = jobs, .folder = folder_of(path)};
    auto found = reduce::reduce(*file, options, told_by(fails, context));
    if (!found.ok()) return model::in_file(std::move(found).status(), *written);
    char* const copy = static_cast<char*>(std::malloc(found->bytes.size() + 1));
    if (!copy) return error(Code::kLimit, "no memory for {} bytes of a model", found->bytes.size());
    std::memcpy(copy, found->bytes.c_str(), found->bytes.size() + 1);
    *reduced = copy;
    *reduced_size = found->bytes.size();
    return {};
  });
}

}  // extern "C"

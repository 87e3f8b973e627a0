#include <cstdlib>

#include "api/handles.h"
#include "ops/random/source.h"

namespace treadle::api {

namespace {

treadle_status make_status(Code code, const char* message) {
  return {Status(code, message), message};
}

// Allocated at the start, and never freed.
treadle_status no_memory_status = make_status(Code::kLimit, "out of memory");
treadle_status busy_status = make_status(Code::kInvalidArgument, "another thread is using it");

}  // namespace

treadle_status* out_of_memory() noexcept {
  return &no_memory_status;
}

treadle_status* busy() noexcept {
  return &busy_status;
}

treadle_status* to_c(Status status) noexcept {
  if (status.ok()) return nullptr;
  try {
    std::string text = status.to_string();
    return new treadle_status{std::move(status), std::move(text)};
  } catch (...) {
    return out_of_memory();
  }
}

treadle_status* refused_memory(const MemoryRefused& refused) noexcept {
  try {
    return to_c(refused.status("what the work needs"));
  } catch (...) {
    return out_of_memory();
  }
}

treadle_status* unexpected(const char* what) noexcept {
  try {
    return to_c(error(Code::kInternal, "unexpected exception: {}", what));
  } catch (...) {
    return out_of_memory();
  }
}

char* copy_text(std::string_view text) noexcept {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (!copy) return nullptr;
  if (!text.empty()) std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = 0;
  return copy;
}

Status give_text(std::string_view text, char** out) {
  char* copy = copy_text(text);
  if (!copy) return error(Code::kLimit, "no memory for {} bytes of text", text.size());
  *out = copy;
  return {};
}

}  // namespace treadle::api

extern "C" {

const char* treadle_version(void) {
  return TREADLE_VERSION;
}

void treadle_set_seed(uint64_t seed) {
  treadle::random::set_process_seed(seed);
}

void treadle_free(void* memory) {
  std::free(memory);
}

treadle_code treadle_status_code(const treadle_status* status) {
  if (status == treadle::api::busy()) return TREADLE_BUSY;
  return status ? static_cast<treadle_code>(status->status.code()) : TREADLE_OK;
}

const char* treadle_status_message(const treadle_status* status) {
  return status ? status->status.message().c_str() : "";
}

const char* treadle_status_place(const treadle_status* status) {
  return status ? status->status.place().c_str() : "";
}

const char* treadle_status_text(const treadle_status* status) {
  return status ? status->text.c_str() : "";
}

void treadle_status_free(treadle_status* status) {
  if (status != treadle::api::out_of_memory() && status != treadle::api::busy()) delete status;
}

const char* treadle_code_name(treadle_code code) {
  if (code == TREADLE_BUSY) return "busy";
  return treadle::code_name(static_cast<treadle::Code>(code)).data();
}

}  // extern "C"

static_assert(static_cast<int>(treadle::Code::kInvalidArgument) == TREADLE_INVALID_ARGUMENT);
static_assert(static_cast<int>(treadle::Code::kRuntime) == TREADLE_RUNTIME);
static_assert(static_cast<int>(treadle::Code::kInternal) == TREADLE_INTERNAL);

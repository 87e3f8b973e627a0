#include "quiet_entries.h"

#include <algorithm>
#include <iterator>

#include "configuration.h"

namespace treadle::dropin {

namespace {

// Entries that may have any value. A key that ends with a point stands for all keys with this prefix.
constexpr std::string_view kQuietOfSessions[] = {
    kFolder,
    kDenormals,
    // how a file is read
    "session.external_data_loader.",
    "session.load_model_format",
    "session.use_external_initializer_file_buffers_directly",
    "session.use_ort_model_bytes_directly",
    "session.use_ort_model_bytes_for_initializers",
    // memory
    "session.use_device_allocator_for_initializers",
    "session.use_env_allocators",
    // packed weights
    "session.disable_prepacking",
    "session.prepack.enable_parallel",
    "session.save_external_prepacked_constant_initializers",
    // threads, and how they wait
    "session.dynamic_block_base",
    "session.force_spinning_stop",
    "session.inter_op.",
    "session.intra_op.",
    "session.intra_op_thread_affinities",
};
constexpr std::string_view kQuietOfRuns[] = {"disable_synchronize_execution_providers"};
constexpr std::string_view kSaveFormat = "session.save_model_format";

bool stands_for(std::string_view listed, std::string_view key) {
  return listed.ends_with('.') ? key.starts_with(listed) : key == listed;
}

template <size_t kCount>
bool lists(const std::string_view (&entries)[kCount], std::string_view key) {
  return std::ranges::any_of(entries, [&](std::string_view listed) { return stands_for(listed, key); });
}

}  // namespace

bool is_quiet(Owner owner, std::string_view key, std::string_view value) {
  if (value.empty() || value == "0") return true;  // the entry requests nothing
  if (owner == Owner::kRun) return lists(kQuietOfRuns, key);
  return key.starts_with(kOwnPrefix) || lists(kQuietOfSessions, key) || (key == kSaveFormat && value == "ONNX");
}

}  // namespace treadle::dropin

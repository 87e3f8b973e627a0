#pragma once
// Native code that outlives the process: one file per loop in a folder of the user, named after the loop's key
// (plan/native_key.h).
//
// The folder belongs to the user alone (mode 0700). A file is written under a temporary name and renamed, so a reader
// sees a whole file or none, whichever processes write. A file is used only if its key and the digest over its contents
// are right. Code is copied into memory of the process, not mapped, since another process may truncate or write the
// file at any time. When all files together exceed the limit, the least recently used ones are deleted.

#include <optional>
#include <string>

#include "base/digest.h"
#include "plan/native.h"

namespace treadle::run {

struct NativeCacheOptions {
  // Folder of the files; "off": no cache. "": TREADLE_JIT_CACHE, else $XDG_CACHE_HOME/treadle or ~/.cache/treadle.
  std::string folder;
  // Limit of all files together; 0: TREADLE_JIT_CACHE_BYTES, else kDefaultBytes.
  size_t max_bytes = 0;

  static constexpr size_t kDefaultBytes = size_t{256} << 20;
};

// Any number of threads and processes may use a cache at once. No failure is an error: a caller that gets no code
// compiles.
class NativeCache {
 public:
  explicit NativeCache(const NativeCacheOptions& options = {});

  bool is_on() const { return !folder_.empty(); }
  const std::string& folder() const { return folder_; }
  // Why the folder cannot be used; empty if it can, or if the cache is off. Makes the folder if there is none.
  std::string why_unusable() const;

  // `why`: what is wrong with the folder or the file; empty if there is no such file.
  std::optional<plan::NativeBlob> load(const Digest& key, std::string& why) const;
  // False: `why` says why the code could not be stored.
  bool store(const Digest& key, const plan::NativeBlob& blob, std::string& why) const;

 private:
  std::string folder_;  // empty: off
  size_t max_bytes_ = 0;
};

}  // namespace treadle::run

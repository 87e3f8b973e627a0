#pragma once
// Native code that outlives the process: one file per loop in a folder of the user's, under its key
// (plan/native_key.h).
//
// The folder belongs to the user alone (mode 0700). Files are written under another name and renamed, so a reader sees
// a whole file or none, whoever else writes; a file is believed only if its key and the digest over all of it are
// right. Code is copied into memory of the process and not mapped from the file, which may be cut or written to at any
// time. When all files together exceed the limit, those not used for longest go.

#include <optional>
#include <string>

#include "base/digest.h"
#include "plan/native.h"

namespace treadle::run {

struct NativeCacheOptions {
  // Where the files are; "off": nowhere. "": what TREADLE_JIT_CACHE says, else $XDG_CACHE_HOME/treadle or
  // ~/.cache/treadle.
  std::string folder;
  // Of all files together; 0: what TREADLE_JIT_CACHE_BYTES says, else kDefaultBytes.
  size_t max_bytes = 0;

  static constexpr size_t kDefaultBytes = size_t{256} << 20;
};

// May be used by any number of threads and processes at once. Nothing here is an error: whoever gets no code compiles.
class NativeCache {
 public:
  explicit NativeCache(const NativeCacheOptions& options = {});

  bool is_on() const { return !folder_.empty(); }
  const std::string& folder() const { return folder_; }
  // What is wrong with the folder, which is made if it is not there; empty where nothing is, or the cache is off.
  std::string why_unusable() const;

  // `why`: what is wrong with the folder or the file; empty where there is just none.
  std::optional<plan::NativeBlob> load(const Digest& key, std::string& why) const;
  // False: `why` it could not be kept.
  bool store(const Digest& key, const plan::NativeBlob& blob, std::string& why) const;

 private:
  std::string folder_;  // empty: off
  size_t max_bytes_ = 0;
};

}  // namespace treadle::run

#pragma once
// Shares objects with equal bytes: finds a living object whose bytes are the same.

#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/name_map.h"
#include "base/no_fork.h"

namespace treadle {

// Hashes samples of the bytes. Large memory is read whole only to compare it with a likely match.
inline uint64_t sampled_hash(std::string_view bytes) {
  constexpr size_t kSample = 256, kSamples = 16;
  uint64_t hash = process_seed() ^ bytes.size();
  if (bytes.size() <= kSample * kSamples) return hash_name(bytes, hash);
  const size_t step = (bytes.size() - kSample) / (kSamples - 1);
  for (size_t i = 0; i < kSamples; ++i) hash = hash_name(bytes.substr(i * step, kSample), hash);
  return hash;
}

// `T` has a member bytes(), and its destructor calls `remove`. Matches are compared in full, so an attacker who chooses
// contents cannot make two objects share.
template <class T>
class EqualBytes {
 public:
  // A living object with these bytes for which `fit(object)` holds. Otherwise the shared pointer that `make()` returns,
  // which later calls find.
  template <class Fit, class Make>
  std::shared_ptr<T> find_or_add(std::string_view bytes, Fit&& fit, Make&& make) {
    const uint64_t hash = sampled_hash(bytes);
    std::shared_ptr<T> made;
    while (true) {
      const auto [found, changes] = candidates(hash);
      for (const auto& one : found) {
        if (fit(*one) && same(one->bytes(), bytes)) return one;
      }
      if (!made) made = make();
      const NoFork whole;
      const std::lock_guard lock(mutex_);
      if (changes != added_) continue;  // another thread may have made the same object meanwhile
      entries_.emplace(hash, made);
      ++added_;
      return made;
    }
  }
  void remove(const T& one) {
    const uint64_t hash = sampled_hash(one.bytes());
    const NoFork whole;
    const std::lock_guard lock(mutex_);
    const auto [first, last] = entries_.equal_range(hash);
    for (auto it = first; it != last;) it = it->second.expired() ? entries_.erase(it) : std::next(it);
  }

 private:
  struct Candidates {
    std::vector<std::shared_ptr<T>> values;
    uint64_t changes;
  };

  Candidates candidates(uint64_t hash) {
    Candidates found;
    const NoFork whole;
    const std::lock_guard lock(mutex_);
    found.changes = added_;
    const auto [first, last] = entries_.equal_range(hash);
    for (auto it = first; it != last; ++it) {
      if (auto one = it->second.lock()) found.values.push_back(std::move(one));
    }
    return found;
  }
  static bool same(std::string_view a, std::string_view b) {
    return a.size() == b.size() && (a.data() == b.data() || std::memcmp(a.data(), b.data(), a.size()) == 0);
  }

  std::mutex mutex_;
  std::unordered_multimap<uint64_t, std::weak_ptr<T>> entries_;
  uint64_t added_ = 0;
};

}  // namespace treadle

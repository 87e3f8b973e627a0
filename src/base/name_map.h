#pragma once
// A hash table from names that lie elsewhere (mostly in a mapped file) to small values. One block holds the slots, one
// the entries; names need no memory.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace treadle {

// A file's author chooses its names, so tables seed the hash with a random number of the process.
uint64_t hash_name(std::string_view name, uint64_t seed);
uint64_t process_seed();

// Entries cannot be removed. Pointers to values are valid until the next insertion. The bytes of names must outlive the
// map.
template <class V>
class NameMap {
 public:
  struct Entry {
    std::string_view name;
    uint64_t hash;
    V value;
  };

  size_t size() const { return entries_.size(); }
  const std::vector<Entry>& entries() const { return entries_; }  // in the order of insertion
  V& value(uint32_t index) { return entries_[index].value; }
  const V& value(uint32_t index) const { return entries_[index].value; }
  std::string_view name(uint32_t index) const { return entries_[index].name; }

  void reserve(size_t names) {
    size_t slots = kFewest;
    while (slots < names * 2) slots *= 2;
    if (slots > slots_.size()) resize(slots);
    entries_.reserve(names);
  }

  // Nothing if there is no such name.
  std::optional<uint32_t> index_of(std::string_view name) const {
    if (!(seen_ & trait_of(name))) return std::nullopt;
    const uint32_t slot = slots_[slot_of(name, hash_name(name, seed_))];
    return slot == 0 ? std::nullopt : std::optional(slot - 1);
  }
  // Null if there is no such name.
  const V* find(std::string_view name) const {
    const auto index = index_of(name);
    return index ? &entries_[*index].value : nullptr;
  }
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  V* find(std::string_view name) { return const_cast<V*>(std::as_const(*this).find(name)); }

  // The index of the name's entry, and whether it is new.
  std::pair<uint32_t, bool> emplace(std::string_view name, V value) {
    if (entries_.size() * 2 >= slots_.size()) resize(slots_.empty() ? kFewest : slots_.size() * 2);
    const uint64_t hash = hash_name(name, seed_);
    uint32_t& slot = slots_[slot_of(name, hash)];
    if (slot != 0) return {slot - 1, false};
    seen_ |= trait_of(name);
    entries_.push_back({name, hash, std::move(value)});
    slot = static_cast<uint32_t>(entries_.size());
    return {slot - 1, true};
  }

 private:
  static constexpr size_t kFewest = 16;

  // One bit, chosen by length and last character. In a map of few names it rules out most other names without a hash.
  static uint64_t trait_of(std::string_view name) {
    const size_t last = name.empty() ? 0 : static_cast<uint8_t>(name.back());
    return uint64_t{1} << ((name.size() * 11 + last) & 63);
  }
  // The slot that has the name, or that the name would get.
  size_t slot_of(std::string_view name, uint64_t hash) const {
    const size_t mask = slots_.size() - 1;
    size_t i = hash & mask;
    for (; slots_[i] != 0; i = (i + 1) & mask) {
      const Entry& entry = entries_[slots_[i] - 1];
      if (entry.hash == hash && entry.name == name) break;
    }
    return i;
  }
  void resize(size_t slots) {
    slots_.assign(slots, 0);
    const size_t mask = slots - 1;
    for (size_t index = 0; index < entries_.size(); ++index) {
      size_t i = entries_[index].hash & mask;
      while (slots_[i] != 0) i = (i + 1) & mask;
      slots_[i] = static_cast<uint32_t>(index + 1);
    }
  }

  uint64_t seed_ = process_seed();
  uint64_t seen_ = 0;            // traits of all names
  std::vector<uint32_t> slots_;  // 1 + index of an entry; 0: free. The number of slots is a power of two
  std::vector<Entry> entries_;
};

}  // namespace treadle

#pragma once
// A hash table from names that lie elsewhere (in a mapped file, mostly) to small values: one block for the slots, one
// for the entries, nothing per name.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace treadle {

// Names in files are chosen by whoever wrote the file: tables seed the hash with a number of the process.
uint64_t hash_name(std::string_view name, uint64_t seed);
uint64_t process_seed();

// Grows only. Pointers to values are good until the next insertion; the names' bytes must outlive the map.
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

  // None when there is no such name.
  std::optional<uint32_t> index_of(std::string_view name) const {
    if (!(seen_ & trait_of(name))) return std::nullopt;
    const uint32_t slot = slots_[slot_of(name, hash_name(name, seed_))];
    return slot == 0 ? std::nullopt : std::optional(slot - 1);
  }
  // Null when there is no such name.
  const V* find(std::string_view name) const {
    const auto index = index_of(name);
    return index ? &entries_[*index].value : nullptr;
  }
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  V* find(std::string_view name) { return const_cast<V*>(std::as_const(*this).find(name)); }

  // The name's index among the entries, and whether it is new.
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

  // One bit, by length and last character: in a map of few names most others can be told without a hash.
  static uint64_t trait_of(std::string_view name) {
    const size_t last = name.empty() ? 0 : static_cast<uint8_t>(name.back());
    return uint64_t{1} << ((name.size() * 11 + last) & 63);
  }
  // Where the name is, or would be.
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
  uint64_t seen_ = 0;            // traits of the names
  std::vector<uint32_t> slots_;  // 1 + index of an entry; 0: free. Their number is a power of two
  std::vector<Entry> entries_;
};

}  // namespace treadle

#include "check/name_table.h"

#include <chrono>
#include <cstring>

namespace treadle {

namespace {

uint64_t mix(uint64_t a, uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// 0 to 8 bytes; short ones by their ends, which costs no call.
uint64_t load(const char* p, size_t size) {
  uint64_t word = 0;
  if (size == 8) {
    std::memcpy(&word, p, 8);
  } else if (size >= 4) {
    uint32_t low = 0, high = 0;
    std::memcpy(&low, p, 4);
    std::memcpy(&high, p + size - 4, 4);
    word = uint64_t{high} << 32 | low;
  } else if (size > 0) {
    word = static_cast<uint64_t>(static_cast<uint8_t>(p[0])) << 16 |
           static_cast<uint64_t>(static_cast<uint8_t>(p[size / 2])) << 8 | static_cast<uint8_t>(p[size - 1]);
  }
  return word;
}

}  // namespace

uint64_t process_seed() {
  static const char address = 0;
  static const uint64_t seed =
      mix(reinterpret_cast<uintptr_t>(&address) | 1,
          static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) ^ 0x9e3779b97f4a7c15);
  return seed;
}

uint64_t hash_name(std::string_view name, uint64_t seed) {
  constexpr uint64_t kMultiplier = 0xa0761d6478bd642f;
  const char* p = name.data();
  size_t left = name.size();
  uint64_t hash = seed ^ name.size();
  for (; left > 8; left -= 8, p += 8) hash = mix(hash ^ load(p, 8), kMultiplier);
  return mix(hash ^ load(p, left), kMultiplier ^ seed);
}

NameTable::NameTable() : slots_(64) {
  entries_.reserve(32);
}

void NameTable::enter() {
  marks_.push_back(undo_.size());
}

void NameTable::drop(size_t mark) {
  while (undo_.size() > mark) {
    entries_[undo_.back().entry].definition = undo_.back().before;
    undo_.pop_back();
  }
  marks_.pop_back();
}

Definition NameTable::define(std::string_view name, DefinedBy by, const void* proto) {
  const uint32_t index = entry_of(name);
  Definition& definition = entries_[index].definition;
  const Definition before = definition;
  undo_.push_back({index, before});
  definition = {by, false, depth(), proto};
  return before;
}

void NameTable::reserve(size_t names) {
  size_t slots = slots_.size();
  while (slots < names * 2) slots *= 2;
  if (slots > slots_.size()) resize(slots);
  entries_.reserve(names);
  undo_.reserve(names);
}

uint32_t NameTable::entry_of(std::string_view name) {
  if (entries_.size() * 2 >= slots_.size()) resize(slots_.size() * 2);
  const uint64_t hash = hash_name(name, seed_);
  const size_t mask = slots_.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    if (slots_[i] == 0) {
      entries_.push_back({name, hash, {}});
      return (slots_[i] = static_cast<uint32_t>(entries_.size())) - 1;
    }
    const Entry& entry = entries_[slots_[i] - 1];
    if (entry.hash == hash && entry.name == name) return slots_[i] - 1;
  }
}

void NameTable::resize(size_t slots) {
  slots_.assign(slots, 0);
  const size_t mask = slots - 1;
  for (size_t index = 0; index < entries_.size(); ++index) {
    size_t i = entries_[index].hash & mask;
    while (slots_[i] != 0) i = (i + 1) & mask;
    slots_[i] = static_cast<uint32_t>(index + 1);
  }
}

}  // namespace treadle

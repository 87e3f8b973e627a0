#pragma once
// A hash table from addresses of objects to small values, in one block. It cannot be iterated, since the order would
// depend on addresses.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace treadle {

// Pointers to values are valid until the next insertion or removal.
template <class Object, class V>
class PointerMap {
 public:
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  const V* find(const Object* key) const {
    if (size_ == 0) return nullptr;
    const Slot& slot = slots_[slot_of(key)];
    return slot.key ? &slot.value : nullptr;
  }
  V* find(const Object* key) { return const_cast<V*>(std::as_const(*this).find(key)); }
  bool contains(const Object* key) const { return find(key) != nullptr; }

  // The value of `key` (not null), and whether it is new.
  std::pair<V*, bool> emplace(const Object* key, V value = {}) {
    if ((size_ + 1) * 2 > slots_.size()) grow();
    Slot& slot = slots_[slot_of(key)];
    if (slot.key) return {&slot.value, false};
    slot = {key, std::move(value)};
    ++size_;
    return {&slot.value, true};
  }
  // Sets the value of `key`.
  void put(const Object* key, V value) { *emplace(key).first = std::move(value); }
  void erase(const Object* key) {
    if (size_ == 0) return;
    size_t hole = slot_of(key);
    if (!slots_[hole].key) return;
    // Entries behind the hole that would no longer be found move up.
    const size_t mask = slots_.size() - 1;
    for (size_t i = (hole + 1) & mask; slots_[i].key; i = (i + 1) & mask) {
      const size_t home = home_of(slots_[i].key);
      if (((i - home) & mask) < ((i - hole) & mask)) continue;
      slots_[hole] = std::move(slots_[i]);
      hole = i;
    }
    slots_[hole] = {};
    --size_;
  }

 private:
  struct Slot {
    const Object* key = nullptr;
    V value{};
  };
  static constexpr size_t kFewest = 16;

  size_t home_of(const Object* key) const {
    return static_cast<size_t>(reinterpret_cast<uintptr_t>(key) * 0x9e3779b97f4a7c15 >> shift_);
  }
  // The slot that has the key, or that the key would get.
  size_t slot_of(const Object* key) const {
    const size_t mask = slots_.size() - 1;
    size_t i = home_of(key);
    while (slots_[i].key && slots_[i].key != key) i = (i + 1) & mask;
    return i;
  }
  void grow() {
    std::vector<Slot> before = std::move(slots_);
    slots_ = std::vector<Slot>(before.empty() ? kFewest : before.size() * 2);
    shift_ = 64 - std::countr_zero(slots_.size());
    for (Slot& slot : before) {
      if (slot.key) slots_[slot_of(slot.key)] = std::move(slot);
    }
  }

  std::vector<Slot> slots_;  // at least half of them free; their number is a power of two
  size_t size_ = 0;
  int shift_ = 0;
};

}  // namespace treadle

// Texts by name, in order of their addition.
#pragma once

#include <string_view>
#include <vector>

#include "api.h"

struct OrtKeyValuePairs {
  void set(std::string key, std::string value) {
    for (size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] != key) continue;
      values[i] = std::move(value);
      return point();
    }
    keys.push_back(std::move(key));
    values.push_back(std::move(value));
    point();
  }
  const std::string* find(std::string_view key) const {
    for (size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] == key) return &values[i];
    }
    return nullptr;
  }
  void remove(std::string_view key) {
    for (size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] != key) continue;
      keys.erase(keys.begin() + static_cast<std::ptrdiff_t>(i));
      values.erase(values.begin() + static_cast<std::ptrdiff_t>(i));
      return point();
    }
  }
  void point() {
    key_texts.clear(), value_texts.clear();
    for (const std::string& key : keys) key_texts.push_back(key.c_str());
    for (const std::string& value : values) value_texts.push_back(value.c_str());
  }

  OrtKeyValuePairs() = default;
  OrtKeyValuePairs(const OrtKeyValuePairs& other) : keys(other.keys), values(other.values) { point(); }
  OrtKeyValuePairs& operator=(const OrtKeyValuePairs&) = delete;

  std::vector<std::string> keys, values;
  std::vector<const char*> key_texts, value_texts;  // the arrays that clients get
};

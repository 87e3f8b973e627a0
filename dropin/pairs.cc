#include "pairs.h"

namespace treadle::dropin::api {

void CreateKeyValuePairs(OrtKeyValuePairs** out) {
  *out = new OrtKeyValuePairs;
}

void AddKeyValuePair(OrtKeyValuePairs* pairs, const char* key, const char* value) {
  if (key && value) pairs->set(key, value);
}

const char* GetKeyValue(const OrtKeyValuePairs* pairs, const char* key) {
  const std::string* value = key ? pairs->find(key) : nullptr;
  return value ? value->c_str() : nullptr;
}

void GetKeyValuePairs(const OrtKeyValuePairs* pairs, const char* const** keys, const char* const** values,
                      size_t* count) {
  *keys = pairs->key_texts.data();
  *values = pairs->value_texts.data();
  *count = pairs->keys.size();
}

void RemoveKeyValuePair(OrtKeyValuePairs* pairs, const char* key) {
  if (key) pairs->remove(key);
}

void ReleaseKeyValuePairs(OrtKeyValuePairs* pairs) {
  delete pairs;
}

}  // namespace treadle::dropin::api

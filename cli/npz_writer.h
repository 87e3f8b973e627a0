#pragma once
// Writes .npz files as numpy.savez does: a zip archive of stored .npy files.

#include <cstdint>
#include <string>
#include <vector>

#include "treadle/treadle.hpp"

namespace cli {

class NpzWriter {
 public:
  // A tensor of numbers, booleans or texts. Control characters in `name`, and parts "..", become "_". Errors: as
  // write_npy().
  void add(const std::string& name, const treadle::Value& value);
  // The bytes of the file.
  std::string finish();

 private:
  struct Member {
    std::string name;
    uint32_t crc = 0;
    uint64_t size = 0, offset = 0;
  };
  std::string bytes_;
  std::vector<Member> members_;
};

}  // namespace cli

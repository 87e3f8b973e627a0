#pragma once
// The results of a stream's pushes, put together to outputs of the whole signal.

#include <string>
#include <vector>

#include "treadle/treadle.hpp"

namespace cli {

class JoinedPushes {
 public:
  explicit JoinedPushes(const treadle::Stream& stream);

  const std::vector<std::string>& names() const { return names_; }
  void add(std::vector<treadle::Value> results);
  // Joined along the output's axis; the last result where pushes give the newest value alone. Empty: there is none.
  // InputError if the results do not fit together.
  treadle::Value value(size_t output) const;

 private:
  std::vector<std::string> names_;
  std::vector<int64_t> axes_;
  std::vector<std::vector<treadle::Value>> parts_;  // by output
};

}  // namespace cli

#pragma once
// A bar on the terminal while work goes on, and Ctrl-C that ends the work where it is.

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "common.h"

namespace cli {

// How far work is, how fast it goes and how long it will still take, on a line of standard error that is overwritten.
// Silent unless that is a terminal, and gone when the object is.
class Bar {
 public:
  // `unit`: what is counted ("iterations").
  Bar(std::string unit, bool quiet);
  ~Bar() { clear(); }
  Bar(const Bar&) = delete;
  Bar& operator=(const Bar&) = delete;

  // `total`: -1 where nobody knows. `what`: is being worked on. Drawn at most ten times a second.
  void update(int64_t done, int64_t total, std::string_view what = {});
  // Takes the line away, for something that is printed.
  void clear();
  // "4,500 of 10,000 iterations"
  std::string where() const;

 private:
  using Clock = std::chrono::steady_clock;
  std::string text(double seconds) const;

  std::string unit_, what_;
  bool silent_, drawn_ = false;
  int64_t done_ = 0, total_ = -1;
  Clock::time_point begin_ = Clock::now(), next_;
};

// The user has ended the work by Ctrl-C, or in another way (CatchInterrupts); says where it was.
struct Interrupted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// While it lives, Ctrl-C is noted, and ends the process only when it comes again.
class CatchInterrupts {
 public:
  // kAll: other requests to end (SIGTERM, SIGHUP) are noted as well, for commands that have something to put away.
  enum class Which : uint8_t { kCtrlC, kAll };
  explicit CatchInterrupts(Which which = Which::kCtrlC);
  ~CatchInterrupts();
  CatchInterrupts(const CatchInterrupts&) = delete;
  CatchInterrupts& operator=(const CatchInterrupts&) = delete;

 private:
  std::vector<int> signals_;
};
// Whether Ctrl-C was noted; in the form in which the library asks.
bool interrupted(void* = nullptr);

// Runs stop at Ctrl-C. `bar`: shows their iterations; must outlive the options.
void watch(treadle::RunOptions& options, Bar* bar = nullptr);

}  // namespace cli

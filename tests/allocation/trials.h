#pragma once
// Calls whose requests for memory are made to fail, one after the other.
//
// A trial is a call and what has to be true around it. It is made once undisturbed, then once for each of its requests
// for memory: that one fails, or it and all behind it do. What has to hold each time: the call gives the error that
// memory is out, or succeeds (what failed was not needed, a cache for one); after the error the same call on the same
// objects succeeds; results are right; nothing is lost, which the number of living pieces of memory tells.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "allocation/faults.h"
#include "treadle/treadle.h"

namespace treadle::faults {

// What is counted of a phase, over all models.
struct Count {
  std::array<char, 24> phase;
  int64_t trials;
  int64_t points;   // requests that failed
  int64_t errors;   // calls that said so
  int64_t wrong;    // results and errors that are not as they should be, memory that is lost
  int64_t crashes;  // and calls that did not end
};

// What a process that tries calls leaves for the one that started it, in memory that both have.
struct Board {
  static constexpr size_t kPhases = 48, kPlaces = size_t{1} << 18;
  std::array<Count, kPhases> counts;
  std::array<Place, kPlaces> places;  // a hash table of those that have been tried
  size_t place_count;
  // Where the process is: to go on behind it, should it die there.
  int64_t trial, at;
  std::array<char, 96> name;
};

struct Trial {
  std::function<void()> prepare = [] {};
  std::function<treadle_status*()> call;
  std::function<std::string()> verify = [] { return std::string(); };  // after success: what is wrong; empty: nothing
  std::function<void()> finish = [] {};
  Whose whose = Whose::kCaller;
};

// The error of calls that give a text, or null when there is no memory for it.
treadle_status* text_or_null(char* text, std::string& out);

class Trials {
 public:
  // Goes on behind trial `trial`, request `at`. `everywhere`: at each request, not only at places that are new.
  Trials(Board& board, bool everywhere, int64_t trial, int64_t at)
      : board_(board), everywhere_(everywhere), skipped_trials_(trial), skipped_(at) {}

  // As run(), with a process of its own for each request: what is made once in a process has not been made yet. What it
  // keeps is not counted as lost.
  void run_in_fresh_processes(const char* phase, const std::string& model, const Trial& trial);
  // From here on, lost memory is no fault.
  void let_lose() { may_lose_ = true; }
  void run(const char* phase, const std::string& model, const Trial& trial);

 private:
  struct Attempt {
    bool was_refused = false, was_error = false;
    std::string wrong;
  };
  Count* begin(const char* phase, const std::string& model);
  std::vector<Place> list_requests(const Trial& trial);
  bool is_wanted(const Trial& trial, const std::vector<Place>& places, size_t i, const Count& count, Point& point);
  std::vector<Place> list_in_fresh_process(const Trial& trial);
  Attempt attempt(const Trial& trial, const Point& point);
  void try_point(const Trial& trial, const Point& point, Count& count);
  void try_in_fresh_process(const Trial& trial, const Point& point, Count& count);
  bool is_new(Place place, How how);
  void tell(const std::string& what, const Point& point);

  Board& board_;
  const bool everywhere_;
  const int64_t skipped_trials_, skipped_;
  bool may_lose_ = false;
  int64_t trial_ = 0;
  int64_t told_ = 0;
};

}  // namespace treadle::faults

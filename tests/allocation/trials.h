#pragma once
// Calls whose requests for memory are made to fail, one after the other.
//
// A trial is a call and the conditions that have to hold around it. It runs once undisturbed, then once for each of its
// requests for memory, which fails, alone or with all later ones. Each time: the call returns the error for a lack of
// memory, or succeeds (if the memory was not needed, as for a cache); after the error the same call on the same objects
// succeeds; results are right; no memory is lost, as the number of live pieces shows.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "allocation/faults.h"
#include "treadle/treadle.h"

namespace treadle::faults {

// Counts of a phase, over all models.
struct Count {
  std::array<char, 24> phase;
  int64_t trials;
  int64_t points;   // requests that failed
  int64_t errors;   // calls that returned an error
  int64_t wrong;    // wrong results, wrong errors, lost memory
  int64_t crashes;  // calls that ended the process, or did not return
};

// Data that a process with trials leaves for its parent, in shared memory.
struct Board {
  static constexpr size_t kPhases = 48, kPlaces = size_t{1} << 18;
  std::array<Count, kPhases> counts;
  std::array<Place, kPlaces> places;  // a hash table of the places that were tried
  size_t place_count;
  // The current position: the parent continues behind it if the process dies.
  int64_t trial, at;
  std::array<char, 96> name;
};

struct Trial {
  std::function<void()> prepare = [] {};
  std::function<treadle_status*()> call;
  std::function<std::string()> verify = [] { return std::string(); };  // after success; the problem, or an empty text
  std::function<void()> finish = [] {};
  Whose whose = Whose::kCaller;
};

// The error of a call that returns a text; null if there is no memory for it.
treadle_status* text_or_null(char* text, std::string& out);

class Trials {
 public:
  // Continues behind trial `trial`, request `at`. `everywhere`: at each request, not only at new places.
  Trials(Board& board, bool everywhere, int64_t trial, int64_t at)
      : board_(board), everywhere_(everywhere), skipped_trials_(trial), skipped_(at) {}

  // As run(), with a process for each request, so that allocations which a process makes once happen each time. Memory
  // that such an allocation keeps does not count as lost.
  void run_in_fresh_processes(const char* phase, const std::string& model, const Trial& trial);
  // From here on, lost memory is allowed.
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

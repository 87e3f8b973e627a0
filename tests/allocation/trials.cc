#include "allocation/trials.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace treadle::faults {

namespace {

constexpr unsigned kLongest = 60;  // seconds, of a call
constexpr int64_t kMostTold = 12;  // of one process
// Processes of a trial that starts one for each request.
constexpr size_t kMostProcesses = 200;
// Requests of one trial if all are tried. Calls with more requests (loops of many iterations) repeat the same ones, and
// the time of a trial grows with the square of the number.
constexpr size_t kMostOfAll = 1000;

treadle_status* const kNoText = reinterpret_cast<treadle_status*>(alignof(void*));

bool says_no_memory(const treadle_status* status) {
  return status == kNoText || (treadle_status_code(status) == TREADLE_LIMIT &&
                               std::strstr(treadle_status_message(status), "memory") != nullptr);
}

std::string text_of(const treadle_status* status) {
  return std::string(treadle_code_name(treadle_status_code(status))) + ": " + treadle_status_text(status);
}

void free_status(treadle_status* status) {
  if (status != kNoText) treadle_status_free(status);
}

}  // namespace

treadle_status* text_or_null(char* text, std::string& out) {
  if (!text) return kNoText;
  std::string().swap(out);
  disarm();
  out = text;
  treadle_free(text);
  return nullptr;
}

bool Trials::is_new(Place place, How how) {
  const Place key = place * 2 + static_cast<Place>(how) + 1;
  size_t at = key * 0x9E3779B97F4A7C15u >> 46;
  while (board_.places[at] != 0 && board_.places[at] != key) at = (at + 1) % Board::kPlaces;
  if (board_.places[at] == key) return false;
  if (board_.place_count < Board::kPlaces / 2) {
    board_.places[at] = key;
    ++board_.place_count;
  }
  return true;
}

// The places that request memory in an undisturbed call.
std::vector<Place> Trials::list_requests(const Trial& trial) {
  trial.prepare();
  begin_listing(trial.whose);
  treadle_status* status = trial.call();
  std::vector<Place> places = end_listing();
  std::string wrong = status ? (status == kNoText ? "no text" : text_of(status)) : trial.verify();
  free_status(status);
  trial.finish();
  if (!wrong.empty()) tell("undisturbed: " + wrong, {});
  if (!wrong.empty()) places.clear();
  return places;
}

Trials::Attempt Trials::attempt(const Trial& trial, const Point& point) {
  Attempt made;
  trial.prepare();
  arm(point);
  treadle_status* status = trial.call();
  made.was_refused = disarm() > 0;
  made.was_error = status != nullptr;
  if (status && !says_no_memory(status)) made.wrong = "said " + text_of(status);
  if (status && !made.was_refused) made.wrong = "an error though nothing was refused";
  free_status(status);
  if (status) {
    status = trial.call();
    if (status) made.wrong = "afterwards: " + (status == kNoText ? std::string("no text") : text_of(status));
    free_status(status);
  }
  if (!status) {
    const std::string wrong = trial.verify();
    if (!wrong.empty()) made.wrong = (made.was_error ? "afterwards: " : "without an error: ") + wrong;
  }
  trial.finish();
  return made;
}

void Trials::try_point(const Trial& trial, const Point& point, Count& count) {
  board_.at = point.nth * 2 + static_cast<int64_t>(point.how);
  alarm(kLongest);
  int64_t before = live();
  Attempt made = attempt(trial, point);
  // A table that is kept has grown once; it does not grow again.
  for (int again = 0; !may_lose_ && made.wrong.empty() && live() > before && again < 3; ++again) {
    before = live();
    const int64_t since = age();
    const Attempt second = attempt(trial, point);
    if (again < 2 || live() <= before || !second.was_refused) continue;
    made.wrong = "lost " + std::to_string(live() - before) + " pieces of memory";
    print_living_since(since);
  }
  alarm(0);
  count.points += made.was_refused;
  count.errors += made.was_error;
  if (made.wrong.empty()) return;
  ++count.wrong;
  tell(made.wrong, point);
}

void Trials::tell(const std::string& what, const Point& point) {
  if (told_++ >= kMostTold) return;
  std::fprintf(stderr, "%s, request %ld%s: %s\n", board_.name.data(), static_cast<long>(point.nth),
               point.how == How::kAllFrom ? " and all behind it" : "", what.c_str());
  if (point.nth > 0) print_refused();
}

// Null: this trial is done.
Count* Trials::begin(const char* phase, const std::string& model) {
  const int64_t number = ++trial_;
  if (number < skipped_trials_) return nullptr;
  Count* count = board_.counts.data();
  while (count->phase[0] != 0 && std::strcmp(count->phase.data(), phase) != 0) ++count;
  std::snprintf(count->phase.data(), count->phase.size(), "%s", phase);
  std::snprintf(board_.name.data(), board_.name.size(), "%s of %s", phase, model.c_str());
  board_.trial = number;
  board_.at = 0;
  if (number > skipped_trials_) ++count->trials;
  return count;
}

std::vector<Place> Trials::list_in_fresh_process(const Trial& trial) {
  constexpr size_t kMost = size_t{1} << 18;
  const size_t bytes = sizeof(Place) * kMost;
  auto* list = static_cast<Place*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (list == MAP_FAILED) return {};
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const std::vector<Place> places = list_requests(trial);
    std::copy_n(places.begin(), std::min(places.size(), kMost - 1), list + 1);
    list[0] = std::min(places.size(), kMost - 1);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::vector<Place> places(list + 1, list + 1 + list[0]);
  munmap(list, bytes);
  return places;
}

void Trials::run_in_fresh_processes(const char* phase, const std::string& model, const Trial& trial) {
  Count* const count = begin(phase, model);
  if (!count) return;
  const std::vector<Place> places = list_in_fresh_process(trial);
  if (places.empty()) ++count->wrong;
  may_lose_ = true;
  std::vector<Point> points;
  for (size_t i = 0; i < 2 * places.size(); ++i) {
    if (Point point; is_wanted(trial, places, i, *count, point)) points.push_back(point);
  }
  const size_t step = everywhere_ ? 1 : points.size() / kMostProcesses | 1;
  for (size_t i = 0; i < points.size(); i += step) try_in_fresh_process(trial, points[i], *count);
}

// Whether to try trial request `i / 2` (from 0), in the way of `i`: if its place is new to this phase, or if all
// requests are tried.
bool Trials::is_wanted(const Trial& trial, const std::vector<Place>& places, size_t i, const Count& count,
                       Point& point) {
  const auto in_phase = static_cast<Place>(&count - board_.counts.data()) << 32;
  point = {trial.whose, i % 2 == 0 ? How::kOne : How::kAllFrom, static_cast<int64_t>(i / 2) + 1};
  const size_t step = 2 * places.size() / kMostOfAll | 1;  // odd, so that both ways of refusing occur
  return is_new(places[i / 2] ^ in_phase, point.how) || (everywhere_ && i % step == 0);
}

void Trials::try_in_fresh_process(const Trial& trial, const Point& point, Count& count) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    try_point(trial, point, count);
    std::fflush(nullptr);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status)) return;
  ++count.points;
  ++count.crashes;
  tell("the process died (signal " + std::to_string(WTERMSIG(status)) + ")", point);
}

void Trials::run(const char* phase, const std::string& model, const Trial& trial) {
  Count* const count = begin(phase, model);
  if (!count) return;
  const int64_t number = board_.trial, told = told_;
  list_requests(trial);  // for memory that is allocated once per process
  const std::vector<Place> places = list_requests(trial);
  if (told_ > told) ++count->wrong;
  for (size_t i = 0; i < 2 * places.size(); ++i) {
    const bool was_tried = number == skipped_trials_ && static_cast<int64_t>(i) + 2 <= skipped_;
    if (Point point; !was_tried && is_wanted(trial, places, i, *count, point)) try_point(trial, point, *count);
  }
}

}  // namespace treadle::faults

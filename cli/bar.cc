#include "bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "terminal.h"

namespace cli {

namespace {

constexpr auto kBetweenDrawings = std::chrono::milliseconds(100);
constexpr auto kBeforeFirst = std::chrono::milliseconds(200);  // short work shows nothing

volatile std::sig_atomic_t signal_came = 0;

// "4,500"
std::string grouped(int64_t count) {
  std::string text = fmt::to_string(count);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string rate(double per_second) {
  for (const char* prefix : {"", " k", " M"}) {
    if (per_second < 1000) return fmt::format("{:.{}f}{}/s", per_second, per_second < 10 ? 1 : 0, prefix);
    per_second /= 1000;
  }
  return fmt::format("{:.0f} G/s", per_second);
}

std::string duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::min(seconds, 1e9));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace

Bar::Bar(std::string unit, bool quiet)
    : unit_(std::move(unit)), silent_(quiet || !isatty(STDERR_FILENO)), next_(begin_ + kBeforeFirst) {}

void Bar::update(int64_t done, int64_t total, std::string_view what) {
  done_ = done;
  total_ = total;
  if (silent_) return;
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + kBetweenDrawings;
  what_ = what;
  drawn_ = true;
  const std::string line = text(std::chrono::duration<double>(now - begin_).count());
  fmt::print(stderr, "\r\x1b[K{}", std::string_view(line).substr(0, terminal_width(STDERR_FILENO, 80) - 1));
  std::fflush(stderr);
}

std::string Bar::text(double seconds) const {
  constexpr int kWidth = 24;
  const double speed = static_cast<double>(done_) / seconds;
  std::string line;
  if (total_ > 0) {
    const double share = std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
    const auto filled = static_cast<size_t>(share * kWidth);
    line = fmt::format("{:3.0f}% [{}{}] ", share * 100, std::string(filled, '#'), std::string(kWidth - filled, '-'));
  }
  line += fmt::format("{}  {}", where(), rate(speed));
  if (total_ > 0 && done_ > 0) line += fmt::format("  {} left", duration(static_cast<double>(total_ - done_) / speed));
  return what_.empty() ? line : fmt::format("{}  {}", line, what_);
}

std::string Bar::where() const {
  if (total_ < 0) return fmt::format("{} {}", grouped(done_), unit_);
  return fmt::format("{} of {} {}", grouped(done_), grouped(total_), unit_);
}

void Bar::clear() {
  if (!drawn_) return;
  drawn_ = false;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

CatchInterrupts::CatchInterrupts(Which which) : signals_{SIGINT} {
  if (which == Which::kAll) signals_.insert(signals_.end(), {SIGTERM, SIGHUP});
  struct sigaction action{};
  action.sa_handler = [](int) { signal_came = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  for (const int signal : signals_) sigaction(signal, &action, nullptr);
}

CatchInterrupts::~CatchInterrupts() {
  for (const int signal : signals_) std::signal(signal, SIG_DFL);
}

bool interrupted(void*) {
  return signal_came != 0;
}

void watch(treadle::RunOptions& options, Bar* bar) {
  treadle_run_options_set_interrupt(options.get(), interrupted, nullptr);
  if (!bar) return;
  options.progress([bar](const treadle_progress& progress) {
    bar->update(progress.done, progress.total);
    return false;
  });
}

}  // namespace cli

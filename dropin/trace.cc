#include "trace.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>

#include "files.h"

namespace treadle::dropin {

namespace {

template <class Clock>
int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

}  // namespace

int64_t steady_ns() {
  return now_ns<std::chrono::steady_clock>();
}

Trace::Trace(std::string prefix)
    : start_ns_(static_cast<uint64_t>(now_ns<std::chrono::system_clock>())), origin_ns_(steady_ns()) {
  const auto now = static_cast<std::time_t>(start_ns_ / 1'000'000'000);
  std::tm local{};
  char time[32], milliseconds[16];
  std::strftime(time, sizeof time, "_%Y-%m-%d_%H-%M-%S", localtime_r(&now, &local));
  std::snprintf(milliseconds, sizeof milliseconds, "_%03d.json", static_cast<int>(start_ns_ / 1'000'000 % 1000));
  path_ = std::move(prefix) + time + milliseconds;
}

void Trace::add(const char* name, int64_t begin_ns, int64_t end_ns) {
  char event[256];
  std::snprintf(event, sizeof event,
                "{\"cat\":\"Session\",\"pid\":%d,\"tid\":%d,\"dur\":%lld,\"ts\":%lld,\"ph\":\"X\",\"name\":\"%s\","
                "\"args\":{}}",
                getpid(), gettid(), static_cast<long long>((end_ns - begin_ns) / 1000),
                static_cast<long long>((begin_ns - origin_ns_) / 1000), name);
  append(event);
}

void Trace::add_nodes(std::string_view events) {
  if (events.size() > 2) append(events.substr(1, events.size() - 2));  // without the brackets
}

void Trace::append(std::string_view events) {
  const std::lock_guard lock(mutex_);
  if (!events_.empty()) events_ += ",\n";
  events_ += events;
}

Trace::~Trace() {
  if (written_) return;
  try {
    write();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "treadle: %s\n", error.what());
  }
}

std::string Trace::write() {
  const std::lock_guard lock(mutex_);
  written_ = true;
  const std::string text = "[" + events_ + "]\n";
  write_file(path_, text.data(), text.size());
  return path_;
}

}  // namespace treadle::dropin

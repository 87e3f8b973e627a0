// A file is a header and a payload. The payload holds the blob's lists and numbers, then its code. Numbers are
// little-endian, as are all machines that the code is for.
#include "run/native_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/knobs.h"

namespace treadle::run {

using plan::NativeBlob;
using plan::NativeRef;

namespace {

constexpr char kMagic[8] = {'t', 'r', 'e', 'a', 'd', 'l', 'e', '1'};
constexpr std::string_view kSuffix = ".native", kUnfinished = ".new-";
constexpr size_t kMaxFileBytes = size_t{64} << 20;
constexpr time_t kUnfinishedSeconds = 3600;  // the process that wrote an unfinished file is gone by then
constexpr time_t kUsedSeconds = 3600;        // resolution of the time of last use

struct Header {
  char magic[8];
  Digest key;
  Digest contents;  // of the payload
  uint64_t payload_bytes;
};
static_assert(sizeof(Header) == 80);

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  explicit operator bool() const { return fd_ >= 0; }
  int fd() const { return fd_; }

  bool read_all(void* to, size_t bytes) const {
    auto* at = static_cast<char*>(to);
    while (bytes > 0) {
      const ssize_t got = read(fd_, at, bytes);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      at += got;
      bytes -= static_cast<size_t>(got);
    }
    return true;
  }
  bool write_all(const void* from, size_t bytes) const {
    const auto* at = static_cast<const char*>(from);
    while (bytes > 0) {
      const ssize_t put = write(fd_, at, bytes);
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) return false;
      at += put;
      bytes -= static_cast<size_t>(put);
    }
    return true;
  }

 private:
  int fd_;
};

// --- payload

class Writer {
 public:
  template <class T>
  void number(T value) {
    const auto wide = static_cast<uint64_t>(value);
    bytes_.append(reinterpret_cast<const char*>(&wide), sizeof wide);
  }
  void text(std::string_view text) {
    number(text.size());
    bytes_ += text;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  uint64_t number() {
    uint64_t value = 0;
    const std::string_view bytes = take(sizeof value);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string_view text() { return take(number()); }
  // The length of a list whose elements take at least 8 bytes.
  uint64_t count() {
    const uint64_t count = number();
    if (count > rest_.size() / 8) ok_ = false;
    return ok_ ? count : 0;
  }
  bool at_end() const { return ok_ && rest_.empty(); }

 private:
  std::string_view take(uint64_t bytes) {
    if (!ok_ || bytes > rest_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

  std::string_view rest_;
  bool ok_ = true;
};

std::string to_payload(const NativeBlob& blob) {
  const auto& [bytes, entry, imports, refs] = blob;
  Writer w;
  w.number(entry);
  w.number(imports.size());
  for (const auto& [name, offset] : imports) {
    w.number(offset);
    w.text(name);
  }
  w.number(refs.size());
  for (const auto& [kind, index, type] : refs) {
    w.number(kind);
    w.number(index);
    w.number(type);
  }
  w.text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return w.take();
}

std::optional<NativeBlob> from_payload(std::string_view payload) {
  NativeBlob blob;
  Reader r(payload);
  blob.entry = r.number();
  blob.imports.resize(r.count());
  for (auto& [name, offset] : blob.imports) {
    offset = r.number();
    name = r.text();
  }
  blob.refs.resize(r.count());
  for (auto& [kind, index, type] : blob.refs) {
    kind = static_cast<NativeRef::Kind>(r.number());
    index = static_cast<uint32_t>(r.number());
    type = static_cast<ElementType>(r.number());
  }
  const std::string_view code = r.text();
  if (!r.at_end()) return std::nullopt;
  const auto* first = reinterpret_cast<const std::byte*>(code.data());
  blob.bytes.assign(first, first + code.size());
  return blob;
}

// --- the folder

// A program that runs with more rights than its caller ignores the caller's environment.
const char* trusted(Variable variable) {
  const char* value = secure_getenv(variable.name());
  return value && *value ? value : nullptr;
}

std::string folder_of(const std::string& wanted) {
  std::string folder = wanted;
  if (folder.empty()) {
    if (const char* set = trusted("TREADLE_JIT_CACHE")) {
      folder = set;
    } else if (const char* caches = trusted("XDG_CACHE_HOME")) {
      folder = std::string(caches) + "/treadle";
    } else if (const char* home = trusted("HOME")) {
      folder = std::string(home) + "/.cache/treadle";
    }
  }
  return folder == "off" ? "" : folder;
}

size_t limit_of(size_t wanted) {
  if (wanted > 0) return wanted;
  const char* set = trusted("TREADLE_JIT_CACHE_BYTES");
  const unsigned long long bytes = set ? std::strtoull(set, nullptr, 10) : 0;
  return bytes > 0 ? static_cast<size_t>(bytes) : NativeCacheOptions::kDefaultBytes;
}

constexpr std::string_view kFolder = "the folder of compiled loops";

std::string problem(std::string_view what, const std::string& path, std::string_view fails) {
  return fmt::format("{} {} {}: {}", what, path, fails, std::strerror(errno));
}

void make_folders(const std::string& path) {
  for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    mkdir(path.substr(0, at).c_str(), 0700);
  }
  mkdir(path.c_str(), 0700);
}

// Opens the folder if only the user can read or write it.
File open_folder(const std::string& path, bool make, std::string& why) {
  const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  File folder(open(path.c_str(), flags));
  if (!folder && errno == ENOENT) {
    if (!make) return folder;
    make_folders(path);
    const File made(open(path.c_str(), flags));
    if (!made) why = problem(kFolder, path, "cannot be made");
    return made ? File(dup(made.fd())) : File(-1);
  }
  struct stat info{};
  if (!folder || fstat(folder.fd(), &info) != 0) {
    why = problem(kFolder, path, "cannot be opened");
    return File(-1);
  }
  if (info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
    why =
        fmt::format("{} is not the user's alone (mode {:o}, owner {}): compiled loops are kept in folders of mode 700",
                    path, info.st_mode & 0777u, info.st_uid);
    return File(-1);
  }
  return folder;
}

// --- throwing the oldest away

struct Entry {
  std::string name;
  size_t bytes = 0;
  timespec used{};
};

bool is_older(const Entry& a, const Entry& b) {
  return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
}

std::vector<Entry> list(const File& folder) {
  std::vector<Entry> entries;
  const int again = openat(folder.fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(again >= 0 ? fdopendir(again) : nullptr, closedir);
  if (!stream) {
    if (again >= 0) close(again);
    return entries;
  }
  while (const dirent* found = readdir(stream.get())) {
    const std::string_view name = found->d_name;
    if (!name.ends_with(kSuffix) && !name.starts_with(kUnfinished)) continue;
    struct stat info{};
    if (fstatat(folder.fd(), found->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode)) continue;
    entries.push_back({std::string(name), static_cast<size_t>(info.st_size), info.st_mtim});
  }
  return entries;
}

// Deletes down to three quarters of the limit, so that not every new file has to delete others.
void trim(const File& folder, size_t max_bytes) {
  std::vector<Entry> entries = list(folder);
  const time_t now = time(nullptr);
  std::erase_if(entries, [&](const Entry& entry) {
    const bool lost = entry.name.starts_with(kUnfinished) && entry.used.tv_sec + kUnfinishedSeconds < now;
    if (lost) unlinkat(folder.fd(), entry.name.c_str(), 0);
    return entry.name.starts_with(kUnfinished);
  });
  size_t total = 0;
  for (const Entry& entry : entries) total += entry.bytes;
  if (total <= max_bytes) return;
  std::sort(entries.begin(), entries.end(), is_older);
  for (const Entry& entry : entries) {
    if (total <= max_bytes / 4 * 3) return;
    unlinkat(folder.fd(), entry.name.c_str(), 0);
    total -= entry.bytes;
  }
}

std::string file_name(const Digest& key) {
  return to_hex(key) + std::string(kSuffix);
}

std::string unfinished_name() {
  static std::atomic<unsigned> count{0};
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return fmt::format("{}{}-{}-{}", kUnfinished, getpid(), now.tv_nsec, count++);
}

}  // namespace

NativeCache::NativeCache(const NativeCacheOptions& options)
    : folder_(folder_of(options.folder)), max_bytes_(limit_of(options.max_bytes)) {}

std::string NativeCache::why_unusable() const {
  std::string why;
  if (is_on()) open_folder(folder_, true, why);
  return why;
}

std::optional<NativeBlob> NativeCache::load(const Digest& key, std::string& why) const {
  if (!is_on()) return std::nullopt;
  const File folder = open_folder(folder_, false, why);
  if (!folder) return std::nullopt;
  const std::string name = file_name(key);
  const File file(openat(folder.fd(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!file) {
    if (errno != ENOENT) why = problem("the compiled loop", folder_ + "/" + name, "cannot be opened");
    return std::nullopt;
  }
  auto damaged = [&](std::string_view what) {
    why = fmt::format("{}/{} {}", folder_, name, what);
    return std::nullopt;
  };
  struct stat info{};
  if (fstat(file.fd(), &info) != 0 || !S_ISREG(info.st_mode)) return damaged("is not a file");
  if (info.st_uid != geteuid() || (info.st_mode & 022) != 0) return damaged("can be written by others");
  const auto size = static_cast<size_t>(info.st_size);
  Header header{};
  if (size < sizeof header || !file.read_all(&header, sizeof header)) return damaged("is cut short");
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) return damaged("is no compiled loop");
  if (header.key != key) return damaged("holds another loop");
  if (size > kMaxFileBytes || header.payload_bytes < size - sizeof header) return damaged("is too long");
  if (header.payload_bytes > size - sizeof header) return damaged("is cut short");
  std::string payload(size - sizeof header, '\0');
  if (!file.read_all(payload.data(), payload.size())) return damaged("is cut short");
  if (Digester().add(std::as_bytes(std::span(payload))).finish() != header.contents) return damaged("is damaged");
  std::optional<NativeBlob> blob = from_payload(payload);
  if (!blob) return damaged("is damaged");
  if (info.st_mtim.tv_sec + kUsedSeconds < time(nullptr)) futimens(file.fd(), nullptr);
  return blob;
}

bool NativeCache::store(const Digest& key, const NativeBlob& blob, std::string& why) const {
  if (!is_on()) return false;
  const std::string payload = to_payload(blob);
  const size_t size = sizeof(Header) + payload.size();
  if (size > std::min(kMaxFileBytes, max_bytes_)) {
    why = fmt::format("{} bytes of compiled loop are more than the limit of {}", size,
                      std::min(kMaxFileBytes, max_bytes_));
    return false;
  }
  const File folder = open_folder(folder_, true, why);
  if (!folder) return false;
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.key = key;
  header.contents = Digester().add(std::as_bytes(std::span(payload))).finish();
  header.payload_bytes = payload.size();
  const std::string unfinished = unfinished_name(), name = file_name(key);
  bool written = false;
  {
    const File file(
        openat(folder.fd(), unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    written = file && file.write_all(&header, sizeof header) && file.write_all(payload.data(), payload.size());
  }
  if (!written || renameat(folder.fd(), unfinished.c_str(), folder.fd(), name.c_str()) != 0) {
    const int reason = std::exchange(errno, 0);
    unlinkat(folder.fd(), unfinished.c_str(), 0);
    errno = reason;
    why = problem(kFolder, folder_, "cannot be written to");
    return false;
  }
  trim(folder, max_bytes_);
  return true;
}

}  // namespace treadle::run

#include "wire/mapped_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>

#include "base/equal_bytes.h"
#include "base/no_fork.h"
#include "base/stop.h"

namespace treadle::wire {

namespace {

constexpr size_t kMaxPipeBytes = size_t{2} << 30;  // readers of protobuf accept no more

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }

 private:
  int value_;
};

Status open_error(const std::string& path) {
  const int reason = errno;
  if (reason == ENOMEM) return error(Code::kLimit, "no memory to open \"{}\"", path);
  const Code code = reason == ENOENT || reason == ENOTDIR ? Code::kNoSuchFile : Code::kInvalidFile;
  return error(code, "cannot open \"{}\": {}", path, std::strerror(reason));
}

// Reading other kinds of files has no end or has side effects.
std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "no regular file";
}

Status wrong_kind(mode_t mode, const std::string& path) {
  return error(Code::kInvalidFile, "\"{}\" is {}, expected a file", path, kind_of(mode));
}

// Reads to the end. The descriptor is non-blocking: this function waits while a writer has nothing yet, and fails if
// the pipe has no writer.
Result<std::string> read_pipe(int descriptor, const std::string& path) {
  std::string bytes;
  constexpr size_t kBlock = size_t{64} << 10;
  constexpr int kPollMs = 5;                            // between two checks whether to stop
  const auto block = std::make_unique<char[]>(kBlock);  // on the heap, since it is too large for small stacks
  while (true) {
    if (stop_requested()) return stopped();
    const ssize_t count = ::read(descriptor, block.get(), kBlock);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      pollfd readable{descriptor, POLLIN, 0};
      ::poll(&readable, 1, kPollMs);
      continue;
    }
    if (count < 0) return error(Code::kInvalidFile, "cannot read \"{}\": {}", path, std::strerror(errno));
    if (count == 0 && bytes.empty()) {
      return error(Code::kInvalidFile, "\"{}\" is a pipe that nothing is written to", path);
    }
    if (count == 0) return bytes;
    if (bytes.size() + static_cast<size_t>(count) > kMaxPipeBytes) {
      return error(Code::kLimit, "\"{}\" gives more than {} bytes, the limit for a pipe", path, kMaxPipeBytes);
    }
    bytes.append(block.get(), static_cast<size_t>(count));
  }
}

Result<std::string> read_small(int descriptor, size_t size, const std::string& path) {
  std::string bytes(size, '\0');
  for (size_t have = 0; have < size;) {
    const ssize_t count = ::pread(descriptor, bytes.data() + have, size - have, static_cast<off_t>(have));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return error(Code::kInvalidFile, "cannot read \"{}\": {}", path, std::strerror(errno));
    if (count == 0) bytes.resize(size = have);  // the file has just become shorter
    have += static_cast<size_t>(count);
  }
  return bytes;
}

// Empty if the path does not exist.
std::string canonical(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> resolved(::realpath(path.c_str(), nullptr), std::free);
  if (!resolved && errno == ENOMEM) throw std::bad_alloc();
  return resolved ? resolved.get() : "";
}

// A mapping costs about as much as reading so many bytes.
constexpr size_t kReadAtOnce = size_t{64} << 10;
constexpr size_t kSmallFile = size_t{512} << 10;

std::string parent_folder(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool lies_inside(const std::string& path, const std::string& folder) {
  if (folder == "/") return true;
  return path.size() > folder.size() && path.compare(0, folder.size(), folder) == 0 && path[folder.size()] == '/';
}

bool has_parent_step(std::string_view path) {
  while (!path.empty()) {
    const size_t slash = path.find('/');
    if (path.substr(0, slash) == "..") return true;
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
  }
  return false;
}

bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

// File systems take times from a clock that moves in ticks, so two changes within a tick have the same time. Whether
// `changed` is old enough that a change from now on gets another time.
bool is_settled(const timespec& changed) {
  constexpr int64_t kTicksNs = 50'000'000;
  timespec now{};
  if (::clock_gettime(CLOCK_REALTIME, &now) != 0) return false;
  return (now.tv_sec - changed.tv_sec) * int64_t{1'000'000'000} + (now.tv_nsec - changed.tv_nsec) > kTicksNs;
}

}  // namespace

// The mapped files of the process, by address.
class MappedFiles {
 public:
  void add(const MappedFile& file) {
    const NoFork whole;
    const std::lock_guard lock(mutex_);
    by_end_.emplace(end_of(file), &file);
  }
  // A settled mapping of the file with this identity, size and path; null if there is none.
  std::shared_ptr<MappedFile> find(const MappedFile::Identity& identity, size_t size, const std::string& path) {
    const NoFork whole;
    const std::lock_guard lock(mutex_);
    for (const auto& [end, file] : by_end_) {
      if (!file->settled_ || !file->is(identity, size, path)) continue;
      if (auto found = std::const_pointer_cast<MappedFile>(file->weak_from_this().lock())) return found;
    }
    return nullptr;
  }
  void remove(const MappedFile& file) {
    const NoFork whole;
    const std::lock_guard lock(mutex_);
    by_end_.erase(end_of(file));
  }
  std::shared_ptr<const MappedFile> around(const char* address) {
    const NoFork whole;
    const std::lock_guard lock(mutex_);
    const auto it = by_end_.upper_bound(address);
    if (it == by_end_.end() || address < it->second->bytes().data()) return nullptr;
    return it->second->weak_from_this().lock();
  }

 private:
  static const char* end_of(const MappedFile& file) { return file.bytes().data() + file.bytes().size(); }

  std::mutex mutex_;
  std::map<const char*, const MappedFile*, std::less<>> by_end_;
};

namespace {

MappedFiles& mapped_files() {
  static auto* const files = new MappedFiles;  // never destroyed: files may be closed after all static objects
  return *files;
}

EqualBytes<MappedFile>& equal_bytes() {
  static auto* const models = new EqualBytes<MappedFile>;
  return *models;
}

}  // namespace

Result<std::shared_ptr<MappedFile>> MappedFile::open(const std::string& path) {
  if (path.find('\0') != std::string::npos) {
    return error(Code::kInvalidArgument, "a path with a zero byte cannot be opened");
  }
  // Non-blocking: otherwise opening a pipe would wait for a writer.
  const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (descriptor.get() < 0) {
    Status reason = open_error(path);
    struct stat information{};
    const bool is_socket = ::stat(path.c_str(), &information) == 0 && S_ISSOCK(information.st_mode);
    return is_socket ? wrong_kind(information.st_mode, path) : std::move(reason);
  }
  return from_descriptor(descriptor.get(), path);
}

Result<std::shared_ptr<MappedFile>> MappedFile::open_inside(std::string_view relative,
                                                            const std::vector<std::string>& folders) {
  if (relative.empty() || relative.find('\0') != std::string_view::npos) {
    return error(Code::kInvalidFile, "expected the name of a file with external data, found an empty or broken one");
  }
  if (relative[0] == '/' || has_parent_step(relative)) {
    return error(Code::kInvalidFile,
                 "external data must lie in the model's folder: expected a relative path without \"..\", found \"{}\"",
                 relative);
  }
  if (folders.empty()) {
    return error(Code::kInvalidFile,
                 "external data \"{}\" is relative to the model's folder, but the model was given as bytes without a "
                 "folder, or the folder does not exist",
                 relative);
  }
  bool exists = false;
  for (const std::string& folder : folders) {
    const std::string path = canonical(folder + "/" + std::string(relative));
    if (path.empty()) continue;
    exists = true;
    bool inside = false;
    for (const std::string& allowed : folders) inside |= lies_inside(path, allowed);
    if (!inside) continue;
    // The path is canonical, so a link in its last part has appeared since. Non-blocking: otherwise opening a pipe
    // would wait for a writer.
    const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (descriptor.get() < 0) return open_error(path);
    struct stat information{};
    if (::fstat(descriptor.get(), &information) != 0 || !S_ISREG(information.st_mode)) {
      return error(Code::kInvalidFile, "external data \"{}\" is {}, expected a regular file", relative,
                   kind_of(information.st_mode));
    }
    return from_descriptor(descriptor.get(), path);
  }
  if (exists) {
    return error(Code::kInvalidFile, "external data \"{}\" is a link that leads out of the model's folder", relative);
  }
  return error(Code::kNoSuchFile, "external data \"{}\" does not exist in the model's folder \"{}\"", relative,
               folders[0]);
}

Result<std::shared_ptr<MappedFile>> MappedFile::from_descriptor(int descriptor, const std::string& path) {
  struct stat information{};
  if (::fstat(descriptor, &information) != 0) return open_error(path);
  if (S_ISFIFO(information.st_mode)) {
    TREADLE_ASSIGN(std::string bytes, read_pipe(descriptor, path));
    return own(std::move(bytes), path);
  }
  if (!S_ISREG(information.st_mode)) return wrong_kind(information.st_mode, path);
  const size_t size = static_cast<size_t>(information.st_size);
  if (size <= kReadAtOnce) {
    TREADLE_ASSIGN(std::string bytes, read_small(descriptor, size, path));
    return own(std::move(bytes), path);
  }
  const MappedFile::Identity identity{information.st_dev, information.st_ino, information.st_mtim, information.st_ctim};
  if (auto found = mapped_files().find(identity, size, path); found && found->unchanged().ok()) return found;
  return map(descriptor, size, identity, path);
}

Result<std::shared_ptr<MappedFile>> MappedFile::map(int descriptor, size_t size, const Identity& identity,
                                                    const std::string& path) {
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->path_ = path;
  MappedFiles& all = mapped_files();  // constructed now, since the destructor of a MappedFile uses it
  void* mapping = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (mapping == MAP_FAILED) {
    if (errno == ENOMEM) return error(Code::kLimit, "no memory to map \"{}\" ({} bytes)", path, size);
    return error(Code::kInvalidFile, "cannot map \"{}\" ({} bytes): {}", path, size, std::strerror(errno));
  }
  // A small file is needed whole. A page fault maps the cached pages around it; asking the system to map all takes
  // longer.
  if (size > kSmallFile) ::madvise(mapping, size, MADV_RANDOM);
  file->mapping_ = mapping;
  file->descriptor_ = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  file->bytes_ = {static_cast<const char*>(mapping), size};
  file->watched_ = WatchedMapping(mapping, size);
  file->identity_ = identity;
  file->settled_ = is_settled(identity.changed);
  file->range_ = SharedRange(mapping, size);
  all.add(*file);
  return file;
}

std::shared_ptr<MappedFile> MappedFile::own(std::string bytes, std::string path) {
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->path_ = std::move(path);
  file->owned_ = std::move(bytes);
  file->bytes_ = file->owned_;
  return file;
}

std::shared_ptr<MappedFile> MappedFile::share(std::string_view bytes) {
  return equal_bytes().find_or_add(
      bytes, [](const MappedFile&) { return true; },
      [&] {
        auto file = own(std::string(bytes));
        file->range_ = SharedRange(file->bytes_.data(), file->bytes_.size());
        file->among_equals_ = true;
        return file;
      });
}

std::shared_ptr<MappedFile> MappedFile::borrow(std::string_view bytes) {
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->bytes_ = bytes;
  return file;
}

bool MappedFile::is(const Identity& identity, size_t size, const std::string& path) const {
  return identity_.device == identity.device && identity_.inode == identity.inode && bytes_.size() == size &&
         same_time(identity_.written, identity.written) && same_time(identity_.changed, identity.changed) &&
         path_ == path;
}

void MappedFile::expect_data_reads() const {
  if (!mapping_ || bytes_.size() <= kSmallFile) return;
  if (reads_expected_.exchange(true)) return;  // another thread has done it
  ::madvise(mapping_, bytes_.size(), MADV_NORMAL);
  ::madvise(mapping_, bytes_.size(), MADV_DONTNEED);
}

Status MappedFile::copy(std::string_view part, void* to) const {
  constexpr size_t kFewPages = size_t{16} << 10, kPiece = size_t{8} << 20;
  if (part.empty()) return {};
  if (descriptor_ < 0 || part.size() <= kFewPages) {
    std::memcpy(to, part.data(), part.size());
    return {};
  }
  char* out = static_cast<char*>(to);
  off_t offset = part.data() - bytes_.data();
  for (size_t left = part.size(); left > 0;) {
    if (stop_requested()) return stopped();
    const ssize_t count = ::pread(descriptor_, out, std::min(left, kPiece), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      return error(Code::kInvalidFile, "cannot read \"{}\" at byte {}: {}", path_, offset,
                   count == 0 ? "it has become shorter" : std::strerror(errno));
    }
    out += count;
    offset += count;
    left -= static_cast<size_t>(count);
  }
  return {};
}

Status MappedFile::complete() const {
  if (!mapping_ || !watched_.has_holes()) return {};
  return error(Code::kInvalidFile,
               "\"{}\" has become shorter than the {} bytes that it had when it was opened, or cannot be read", path_,
               bytes_.size());
}

Status MappedFile::unchanged() const {
  if (!mapping_) return {};
  TREADLE_TRY(complete());
  struct stat now{};
  if (::fstat(descriptor_, &now) != 0) return {};
  // A program that closes all descriptors closes this one too. The number may belong to another file by now.
  if (now.st_dev != identity_.device || now.st_ino != identity_.inode) return {};
  if (static_cast<size_t>(now.st_size) != bytes_.size()) {
    return error(Code::kInvalidFile, "\"{}\" had {} bytes when it was opened, and has {} now", path_, bytes_.size(),
                 now.st_size);
  }
  if (same_time(now.st_mtim, identity_.written)) return {};
  return error(Code::kInvalidFile, "\"{}\" has been written to since it was opened", path_);
}

std::shared_ptr<const MappedFile> MappedFile::around(const void* address) {
  return mapped_files().around(static_cast<const char*>(address));
}

MappedFile::~MappedFile() {
  if (mapping_) mapped_files().remove(*this);
  if (among_equals_) equal_bytes().remove(*this);
  range_ = {};
  watched_ = {};
  if (mapping_) ::munmap(mapping_, bytes_.size());
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::vector<std::string> MappedFile::data_folders() const {
  std::vector<std::string> folders;
  if (path_.empty()) return folders;
  const std::string target = canonical(path_);
  for (const std::string& folder : {canonical(parent_folder(path_)), parent_folder(target)}) {
    if (!folder.empty() && folder != "." && (folders.empty() || folders[0] != folder)) folders.push_back(folder);
  }
  return folders;
}

std::vector<std::string> canonical_folders(const std::string& folder) {
  std::string path = canonical(folder);
  if (path.empty()) return {};
  return {std::move(path)};
}

}  // namespace treadle::wire

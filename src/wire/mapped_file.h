#pragma once
// The bytes of a file, mapped read-only, so that weights are read from disk when they are first used. Views into
// `bytes()` are valid while the MappedFile lives; code that keeps a view keeps a shared pointer to it. Small files are
// read at once instead. If a mapped file is shortened or written to, its bytes change. So code that has used them calls
// unchanged() before it passes on results. Opening a file again returns the same mapping if the file has not changed,
// and equal bytes return the same MappedFile. So sessions of one model share its bytes.

#include <sys/types.h>

#include <atomic>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/shared_range.h"
#include "base/status.h"
#include "wire/watched_mapping.h"

namespace treadle::wire {

class MappedFile : public std::enable_shared_from_this<MappedFile> {
 public:
  // Maps a regular file, or reads a small one. Reads a pipe to its end (kLimit above 2 GiB). Errors: kNoSuchFile;
  // kInvalidFile for a folder, a device or a socket, or if the system refuses to open or read.
  static Result<std::shared_ptr<MappedFile>> open(const std::string& path);
  // Maps a regular file inside one of `folders` (canonical paths). `relative`: the location of external data as the
  // model states it. Errors: absolute paths, `..`, links that lead outside, and files that are not regular.
  static Result<std::shared_ptr<MappedFile>> open_inside(std::string_view relative,
                                                         const std::vector<std::string>& folders);
  // Bytes in memory. `path`: the file that they stand for, if any.
  static std::shared_ptr<MappedFile> own(std::string bytes, std::string path = {});
  // A MappedFile with a copy of `bytes`, or an existing one with equal bytes.
  static std::shared_ptr<MappedFile> share(std::string_view bytes);
  // The caller keeps `bytes` alive and unchanged.
  static std::shared_ptr<MappedFile> borrow(std::string_view bytes);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return bytes_; }
  // Whether the bytes are mapped from a file.
  bool is_mapped() const { return mapping_ != nullptr; }
  // A mapping begins without read-ahead, since the structure of a model is a few bytes between large weights. After the
  // structure has been read, this drops pages that were mapped around it, and turns read-ahead on.
  void expect_data_reads() const;
  // Copies a part of `bytes()`. More than a few pages are read by the system's read, which is several times faster than
  // page faults. Errors: kInvalidFile if the file has become shorter.
  Status copy(std::string_view part, void* to) const;
  // Errors: kInvalidFile if a mapped file has changed since it was opened, by its size and the time of its last change,
  // or could not be read.
  Status unchanged() const;
  // The part of unchanged() that asks the system nothing: whether bytes that were read were there.
  Status complete() const;
  // The mapped file whose bytes contain `address`; null if there is none.
  static std::shared_ptr<const MappedFile> around(const void* address);
  const std::string& path() const { return path_; }  // as given; empty for bytes in memory
  // The folders in which external data of this file may lie: that of the path as given, and if the file is a link, that
  // of the link's target (content-addressed caches keep models this way). Empty for bytes in memory.
  std::vector<std::string> data_folders() const;

 private:
  friend class MappedFiles;
  // The system's data about the file when it was mapped.
  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    timespec written{};
    timespec changed{};  // also changes when a program sets back the time of writing
  };

  MappedFile() = default;
  static Result<std::shared_ptr<MappedFile>> from_descriptor(int descriptor, const std::string& path);
  static Result<std::shared_ptr<MappedFile>> map(int descriptor, size_t size, const Identity& identity,
                                                 const std::string& path);
  bool is(const Identity& identity, size_t size, const std::string& path) const;

  std::string path_;
  std::string owned_;
  std::string_view bytes_;
  void* mapping_ = nullptr;
  int descriptor_ = -1;  // of a mapped file
  WatchedMapping watched_;
  Identity identity_;
  bool settled_ = false;  // any later change of the file changes the identity
  bool among_equals_ = false;
  SharedRange range_;
  mutable std::atomic<bool> reads_expected_{false};
};

// `folder` in the form that open_inside() takes; empty if it does not exist.
std::vector<std::string> canonical_folders(const std::string& folder);

}  // namespace treadle::wire

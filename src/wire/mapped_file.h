#pragma once
// The bytes of a file: mapped read-only, so that weights are paged in when they are first used and not before.
// Views into `bytes()` are valid as long as the MappedFile lives; whoever keeps a view keeps a shared pointer to it.
// Small files are read at once instead. A mapped file that is shortened or written to while it is open gives other
// bytes than it did: whoever has used them asks unchanged() before what came of them is passed on.
// Who opens a file that is mapped already gets the same mapping, if the file is as it was, and who brings equal bytes
// gets those that are there: sessions of one model share what lies in them.

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
  // Regular files are mapped, small ones read; pipes that something is written to are read to
  // their end (kLimit past 2 GiB).
  // Errors: kNoSuchFile; kInvalidFile for a folder, a device or a socket, or where the system refuses to open or read.
  static Result<std::shared_ptr<MappedFile>> open(const std::string& path);
  // Maps a regular file inside one of `folders` (canonical paths); `relative` is what a model says of its external
  // data. Absolute paths, `..`, links that lead elsewhere, and what is not a regular file are refused.
  static Result<std::shared_ptr<MappedFile>> open_inside(std::string_view relative,
                                                         const std::vector<std::string>& folders);
  // `path`: the file that the bytes stand for, if any.
  static std::shared_ptr<MappedFile> own(std::string bytes, std::string path = {});
  // A copy of `bytes`, or the one that is there for somebody else.
  static std::shared_ptr<MappedFile> share(std::string_view bytes);
  // The caller keeps `bytes` alive and unchanged.
  static std::shared_ptr<MappedFile> borrow(std::string_view bytes);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return bytes_; }
  // The bytes are not in memory of their own.
  bool is_mapped() const { return mapping_ != nullptr; }
  // A mapping starts without read-ahead: the structure of a model is a few bytes between large weights. Once it has
  // been read, this drops what the kernel mapped around it and lets weights be read ahead from now on.
  void expect_data_reads() const;
  // Copies a part of `bytes()`; past a few pages by the system's read, which is several times faster than faulting them
  // in. Error kInvalidFile when the file has become shorter.
  Status copy(std::string_view part, void* to) const;
  // Error kInvalidFile where the file is mapped and is not as it was when it was opened, as far as its size and the
  // time of its last change tell, or could not be read.
  Status unchanged() const;
  // The mapped file that has `address` among its bytes; null: none has.
  static std::shared_ptr<const MappedFile> around(const void* address);
  const std::string& path() const { return path_; }  // as given; empty for bytes in memory
  // Where external data of this file may lie: the folder of the path as given and, if the file is a link, the folder
  // of what it leads to (content-addressed caches keep models this way). Empty for bytes in memory.
  std::vector<std::string> data_folders() const;

 private:
  friend class MappedFiles;
  // What the system said of the file when it was mapped.
  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    timespec written{};
    timespec changed{};  // also by what puts an older time of writing in place
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
  bool settled_ = false;  // no later change can have the identity's times
  bool among_equals_ = false;
  SharedRange range_;
  mutable std::atomic<bool> reads_expected_{false};
};

// `folder` as MappedFile::open_inside() takes it; empty when there is no such folder.
std::vector<std::string> canonical_folders(const std::string& folder);

}  // namespace treadle::wire

#pragma once
// TensorProto -> Tensor. Contents stay in the mapped file if they are aligned for their type and need not be copied.
// The tensor keeps alive the memory that it uses. Sizes are checked before memory is allocated.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "type/tensor.h"
#include "type/type.h"
#include "wire/mapped_file.h"
#include "wire/onnx.h"

namespace treadle::model {

inline constexpr size_t kMaxRank = 64;
// Limits of sparse tensors that are written out dense. Sizes alone justify no memory, so it is bounded by a multiple of
// the stored values.
inline constexpr size_t kDensePerStored = 4096;
inline constexpr size_t kSmallDenseBytes = size_t{16} << 20;  // always allowed

class TensorReader {
 public:
  // `folders`: where external data may lie (MappedFile::data_folders()); empty refuses external data.
  TensorReader(std::shared_ptr<wire::MappedFile> file, std::vector<std::string> folders);
  // External data lies in this folder or, if the path is empty, in the folder of the model's file. The folder is looked
  // up on first use.
  struct Folder {
    explicit Folder(std::string folder) : path(std::move(folder)) {}
    std::string path;
  };
  TensorReader(std::shared_ptr<wire::MappedFile> file, Folder folder);
  // Uses this instead of a file for external data of that name.
  void give_file(std::string location, std::shared_ptr<wire::MappedFile> file) {
    external_files_.emplace(std::move(location), Source(std::move(file)));
  }
  // Copies all further contents into memory.
  void copy_contents() { copies_ = true; }
  // Gives further copies memory of their own, which may be written to. Otherwise copies may be shared
  // (type/shared_tensor.h).
  void unshare_copies() { shares_ = false; }

  // Errors: kInvalidFile or kInvalidModel, kNotImplemented (segments), kLimit.
  Result<Tensor> read(const wire::TensorProto& proto);
  // The type by the element type and sizes in the message.
  static Result<Type> type_of(const wire::TensorProto& proto);
  Result<Tensor> read_dense(const wire::SparseTensorProto& proto);
  // MappedFile::unchanged() for all files that were read.
  Status unchanged() const;

 private:
  // A file, and a buffer of all its bytes that keeps it alive.
  struct Source {
    explicit Source(std::shared_ptr<wire::MappedFile> mapped);
    std::shared_ptr<wire::MappedFile> file;
    BufferRef buffer;
  };

  Result<Tensor> from_raw(ElementType type, Dims dims, int64_t count, const Source& source, std::string_view bytes);
  // A copy in the engine's representation of elements. `as_is`: the file has the same representation.
  static Result<Tensor> copied(ElementType type, const Dims& dims, const Source& source, std::string_view bytes,
                               bool as_is);
  // Room for the contents of a small tensor in memory shared by many.
  std::byte* small_room(size_t bytes);
  Result<Tensor> read_external(const wire::TensorProto& proto, ElementType type, Dims dims, int64_t count);
  Result<const Source*> external_file(std::string_view location);

  Source file_;
  bool copies_ = false;
  bool shares_ = true;
  BufferRef small_;  // the last piece of such memory
  size_t small_used_ = 0;
  std::optional<std::vector<std::string>> folders_;
  std::string folder_;  // origin of folders_
  std::map<std::string, Source, std::less<>> external_files_;
};

}  // namespace treadle::model

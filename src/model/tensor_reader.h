#pragma once
// TensorProto -> Tensor. Contents stay in the mapped file where they lie aligned for their type and nobody wants them
// copied, and are copied otherwise; either way the tensor keeps alive what it needs. Sizes are checked before memory is
// asked for.

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
// Of a sparse tensor written out: its sizes alone justify no memory, what is stored of it justifies so many times as
// much.
inline constexpr size_t kDensePerStored = 4096;
inline constexpr size_t kSmallDenseBytes = size_t{16} << 20;  // nobody minds

class TensorReader {
 public:
  // `folders`: where external data may lie (MappedFile::data_folders()); empty refuses external data.
  TensorReader(std::shared_ptr<wire::MappedFile> file, std::vector<std::string> folders);
  // External data lies in this folder or, if the path is empty, where the file says. Nobody looks before it is needed.
  struct Folder {
    explicit Folder(std::string folder) : path(std::move(folder)) {}
    std::string path;
  };
  TensorReader(std::shared_ptr<wire::MappedFile> file, Folder folder);
  // What stands for the external data of this name, rather than a file.
  void give_file(std::string location, std::shared_ptr<wire::MappedFile> file) {
    external_files_.emplace(std::move(location), Source(std::move(file)));
  }
  // From now on no contents stay in a mapped file.
  void copy_contents() { copies_ = true; }
  // From now on what is copied from a file is memory of its own, which may be written to; else others may share it
  // (type/shared_tensor.h).
  void own_copies() { shares_ = false; }

  // Errors: kInvalidFile or kInvalidModel, kNotImplemented (segments), kLimit.
  Result<Tensor> read(const wire::TensorProto& proto);
  // Its type, from the element type and sizes that it states.
  static Result<Type> type_of(const wire::TensorProto& proto);
  Result<Tensor> read_dense(const wire::SparseTensorProto& proto);
  // Of all files that were read, MappedFile::unchanged().
  Status unchanged() const;

 private:
  // A file, and the buffer of all its bytes that keeps it alive.
  struct Source {
    explicit Source(std::shared_ptr<wire::MappedFile> mapped);
    std::shared_ptr<wire::MappedFile> file;
    BufferRef buffer;
  };

  Result<Tensor> from_raw(ElementType type, Dims dims, int64_t count, const Source& source, std::string_view bytes);
  // In memory of its own, as the engine holds such elements; `as_is`: as the file does.
  static Result<Tensor> copied(ElementType type, const Dims& dims, const Source& source, std::string_view bytes,
                               bool as_is);
  // Room for the contents of a small tensor that many share.
  std::byte* small_room(size_t bytes);
  Result<Tensor> read_external(const wire::TensorProto& proto, ElementType type, Dims dims, int64_t count);
  Result<const Source*> external_file(std::string_view location);

  Source file_;
  bool copies_ = false;
  bool shares_ = true;
  BufferRef small_;  // the last piece of such room
  size_t small_used_ = 0;
  std::optional<std::vector<std::string>> folders_;
  std::string folder_;  // where folders_ come from
  std::map<std::string, Source, std::less<>> external_files_;
};

}  // namespace treadle::model

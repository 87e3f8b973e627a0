// Tensors of other packages (torch, jax, ...), without a copy if they are contiguous and in memory that the CPU can
// read.

#include <cstring>

#include "support.h"

namespace treadle_python {

namespace {

// The structures of the protocol, DLPack 0.x.
struct DlDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DlTensor {
  void* data;
  int32_t device_type, device_id;
  int32_t ndim;
  DlDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: contiguous
  uint64_t byte_offset;
};
struct DlManagedTensor {
  DlTensor tensor;
  void* manager;
  void (*deleter)(DlManagedTensor*);
};

constexpr int32_t kCpu = 1;
constexpr int32_t kPinned = 3;  // page-locked by a GPU's driver, but in the CPU's memory

struct Row {
  int element;
  uint8_t code, bits;
};
constexpr Row kRows[] = {{1, 2, 32},  {2, 1, 8},   {3, 0, 8},   {4, 1, 16},  {5, 0, 16},  {6, 0, 32},  {7, 0, 64},
                         {9, 6, 8},   {10, 2, 16}, {11, 2, 64}, {12, 1, 32}, {13, 1, 64}, {14, 5, 64}, {15, 5, 128},
                         {16, 4, 16}, {17, 10, 8}, {18, 11, 8}, {19, 12, 8}, {20, 13, 8}, {24, 14, 8}};

int element_of(DlDataType type) {
  for (const Row& row : kRows) {
    if (row.code == type.code && row.bits == type.bits && type.lanes == 1) return row.element;
  }
  return 0;
}

bool is_contiguous(const DlTensor& t) {
  if (!t.strides) return true;
  int64_t expected = 1;
  for (int32_t i = t.ndim - 1; i >= 0; --i) {
    if (t.shape[i] == 0) return true;
    if (t.shape[i] != 1 && t.strides[i] != expected) return false;
    expected *= t.shape[i];
  }
  return true;
}

void copy_strided(const DlTensor& t, int32_t axis, const char* from, char*& to, size_t width) {
  if (axis == t.ndim) {
    std::memcpy(to, from, width);
    to += width;
    return;
  }
  for (int64_t i = 0; i < t.shape[axis]; ++i) {
    copy_strided(t, axis + 1, from + i * t.strides[axis] * static_cast<int64_t>(width), to, width);
  }
}

void release_managed(void* context) {
  if (!Py_IsInitialized()) return;
  auto* managed = static_cast<DlManagedTensor*>(context);
  const py::Locked locked;
  if (managed->deleter) managed->deleter(managed);
}

Owned<treadle_value> copy_of(const DlTensor& t, int element, const char* data) {
  treadle_value* value = nullptr;
  check(treadle_tensor_create(element, t.shape, static_cast<size_t>(t.ndim), &value));
  Owned<treadle_value> owned(value);
  auto* to = static_cast<char*>(treadle_tensor_mutable_data(value));
  const size_t width = treadle_element_width(element);
  if (is_contiguous(t)) {
    if (const size_t bytes = treadle_tensor_bytes(value)) std::memcpy(to, data, bytes);
  } else {
    copy_strided(t, 0, data, to, width);
  }
  return owned;
}

struct Exported {
  DlManagedTensor managed{};
  Owned<treadle_value> value;
};

void free_exported(DlManagedTensor* managed) {
  delete static_cast<Exported*>(managed->manager);
}

// Frees the tensor of a capsule that was never consumed.
void free_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, "dltensor")) return;
  auto* managed = static_cast<DlManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
  managed->deleter(managed);
}

}  // namespace

Owned<treadle_value> from_dlpack(PyObject* object, const char* name) {
  const py::Object capsule =
      PyCapsule_CheckExact(object) ? py::borrow(object) : py::call(py::attribute(object, "__dlpack__"));
  auto* managed = static_cast<DlManagedTensor*>(PyCapsule_GetPointer(capsule.get(), "dltensor"));
  py::require(managed != nullptr);
  const DlTensor& t = managed->tensor;
  if (t.device_type != kCpu && t.device_type != kPinned) {
    invalid_argument(std::string("input '") + name + "' is not in the CPU's memory");
  }
  const int element = element_of(t.dtype);
  if (element == 0) {
    invalid_argument(std::string("input '") + name + "': there is no element type for DLPack code " +
                     std::to_string(t.dtype.code) + " with " + std::to_string(t.dtype.bits) + " bits");
  }
  char* data = static_cast<char*>(t.data) + t.byte_offset;
  const size_t width = treadle_element_width(element);
  const bool aligned = reinterpret_cast<uintptr_t>(data) % (width < 8 ? width : 8) == 0;
  if (!is_contiguous(t) || !aligned) return copy_of(t, element, data);  // the capsule frees its tensor
  size_t bytes = width;
  for (int32_t i = 0; i < t.ndim; ++i) bytes *= static_cast<size_t>(t.shape[i]);
  treadle_value* value = nullptr;
  check(treadle_tensor_borrow(element, t.shape, static_cast<size_t>(t.ndim), data, bytes, true, release_managed,
                              managed, &value));
  PyCapsule_SetName(capsule.get(), "used_dltensor");
  return Owned<treadle_value>(value);
}

bool is_uint8_dlpack(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, "dltensor")) py::type_error("not a DLPack capsule: " + py::type_name(capsule));
  const auto* managed = static_cast<DlManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
  constexpr int kUint8 = 2;
  return element_of(managed->tensor.dtype) == kUint8;
}

py::Object to_dlpack(const treadle_value* tensor) {
  const int element = treadle_tensor_element(tensor);
  const Row* row = nullptr;
  for (const Row& candidate : kRows) {
    if (candidate.element == element) row = &candidate;
  }
  if (!row) {
    const char* text = treadle_element_name(element);
    invalid_argument(std::string("DLPack has no type for ") + (text ? text : "this value"));
  }
  treadle_value* copy = nullptr;
  check(treadle_value_copy(tensor, &copy));
  auto exported = std::make_unique<Exported>();
  exported->value.reset(copy);
  DlTensor& t = exported->managed.tensor;
  t.data = const_cast<void*>(treadle_tensor_data(copy));
  t.device_type = kCpu;
  t.ndim = static_cast<int32_t>(treadle_tensor_rank(copy));
  t.dtype = {row->code, row->bits, 1};
  t.shape = const_cast<int64_t*>(treadle_tensor_dims(copy));
  exported->managed.manager = exported.get();
  exported->managed.deleter = free_exported;
  py::Object capsule = py::steal(PyCapsule_New(&exported->managed, "dltensor", free_capsule));
  [[maybe_unused]] auto* kept_by_capsule = exported.release();
  return capsule;
}

}  // namespace treadle_python

// Bytes as a stand-alone value of a type that the first byte chooses; what is read can be written and read again.

#include "fuzz/support/found.h"
#include "model/value_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace treadle;
  if (size == 0) return 0;
  const Type tensor = Type::tensor(ElementType::kFloat);
  const Type map = Type::map(ElementType::kString, tensor);
  const Type types[] = {tensor, Type::sequence(tensor), Type::optional(Type::sequence(Type())), map,
                        Type::sequence(Type::optional(map))};
  const Type& type = types[data[0] % std::size(types)];
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  auto value = model::read_value(wire::MappedFile::borrow(bytes), type);
  if (!value.ok()) return 0;
  auto written = model::write_value(*value);
  if (!written.ok()) fuzz::found("a value that cannot be written: " + written.error().to_string());
  auto again = model::read_value(wire::MappedFile::own(std::move(*written)), type);
  if (!again.ok()) fuzz::found("a value of ours that does not read back: " + again.error().to_string());
  fuzz::expect(identical(*value, *again), "a value that changed on its way");
  return 0;
}

#include "jit/object.h"

#include <llvm/BinaryFormat/ELF.h>
#include <llvm/Object/ELFObjectFile.h>

#include <cstring>
#include <map>
#include <optional>

namespace treadle::jit {

namespace {

using llvm::object::ELF64LEObjectFile;
using llvm::object::ELFSymbolRef;
using llvm::object::RelocationRef;
using llvm::object::SectionRef;

// jmp *[rip + 0], followed by the eight bytes that it reads.
constexpr unsigned char kStub[] = {0xff, 0x25, 0, 0, 0, 0, 0x90, 0x90, 0, 0, 0, 0, 0, 0, 0, 0};
constexpr size_t kStubAddress = 8;

template <class T>
std::optional<T> value_of(llvm::Expected<T> expected) {
  if (expected) return std::move(*expected);
  llvm::consumeError(expected.takeError());
  return std::nullopt;
}

class Linker {
 public:
  Linker(const ELF64LEObjectFile& object, plan::NativeBlob& blob, std::string& why)
      : object_(object), blob_(blob), why_(why) {}

  bool link(llvm::StringRef entry) {
    for (const SectionRef& section : object_.sections()) {
      if (!(ELFSection(section).getFlags() & llvm::ELF::SHF_ALLOC)) continue;
      if (section.getSize() == 0 || is_unwind(section)) continue;
      if (!place(section)) return false;
    }
    for (const SectionRef& section : object_.sections()) {
      const auto target = value_of(section.getRelocatedSection());
      if (!target) return refuse("a section of relocations without its section");
      if (*target == object_.section_end() || !offsets_.contains((*target)->getIndex())) continue;
      for (const RelocationRef& relocation : section.relocations()) {
        if (!resolve(relocation, offsets_.at((*target)->getIndex()))) return false;
      }
    }
    for (const ELFSymbolRef symbol : object_.symbols()) {
      const auto name = value_of(symbol.getName());
      if (!name || *name != entry) continue;
      size_t at = 0;
      if (!address(symbol, at)) return false;
      blob_.entry = at;
      return true;
    }
    return refuse("the function is not in the object");
  }

 private:
  using ELFSection = llvm::object::ELFSectionRef;

  bool refuse(std::string why) {
    why_ = std::move(why);
    return false;
  }

  static bool is_unwind(const SectionRef& section) {
    const auto name = value_of(section.getName());
    return name && name->starts_with(".eh_frame");
  }

  bool place(const SectionRef& section) {
    const size_t alignment = std::max<size_t>(section.getAlignment().value(), 1);
    const size_t at = (blob_.bytes.size() + alignment - 1) / alignment * alignment;
    const auto contents = value_of(section.getContents());
    if (!contents) return refuse("a section that cannot be read");
    if (ELFSection(section).getFlags() & llvm::ELF::SHF_WRITE) return refuse("a section of variables");
    blob_.bytes.resize(at + contents->size());
    std::memcpy(blob_.bytes.data() + at, contents->data(), contents->size());
    offsets_[section.getIndex()] = at;
    return true;
  }

  // The address of a symbol in a placed section, or of the stub for an external function.
  bool address(const ELFSymbolRef& symbol, size_t& at) {
    const auto section = value_of(symbol.getSection());
    if (!section) return refuse("a symbol without a section");
    if (*section != object_.section_end()) {
      const auto it = offsets_.find((*section)->getIndex());
      if (it == offsets_.end()) return refuse("a symbol in a section that was left out");
      const auto value = value_of(symbol.getValue());
      if (!value) return refuse("a symbol without a value");
      at = it->second + *value;
      return true;
    }
    const auto name = value_of(symbol.getName());
    if (!name) return refuse("a symbol without a name");
    auto [stub, fresh] = stubs_.emplace(name->str(), 0);
    if (fresh) {
      stub->second = (blob_.bytes.size() + 15) / 16 * 16;
      blob_.bytes.resize(stub->second + sizeof kStub);
      std::memcpy(blob_.bytes.data() + stub->second, kStub, sizeof kStub);
      const int32_t distance = kStubAddress - 6;
      std::memcpy(blob_.bytes.data() + stub->second + 2, &distance, sizeof distance);
      blob_.imports.push_back({name->str(), stub->second + kStubAddress});
    }
    at = stub->second;
    return true;
  }

  bool resolve(const RelocationRef& relocation, size_t base) {
    const uint64_t type = relocation.getType();
    if (type != llvm::ELF::R_X86_64_PC32 && type != llvm::ELF::R_X86_64_PLT32) {
      return refuse("a relocation of type " + std::to_string(type));
    }
    size_t target = 0;
    if (!address(*relocation.getSymbol(), target)) return false;
    const auto addend = value_of(llvm::object::ELFRelocationRef(relocation).getAddend());
    if (!addend) return refuse("a relocation without an addend");
    const size_t place = base + relocation.getOffset();
    const auto value = static_cast<int32_t>(static_cast<int64_t>(target) + *addend - static_cast<int64_t>(place));
    std::memcpy(blob_.bytes.data() + place, &value, sizeof value);
    return true;
  }

  const ELF64LEObjectFile& object_;
  plan::NativeBlob& blob_;
  std::string& why_;
  std::map<uint64_t, size_t> offsets_;   // by section
  std::map<std::string, size_t> stubs_;  // by external function
};

}  // namespace

bool link_object(llvm::StringRef bytes, llvm::StringRef entry, plan::NativeBlob& blob, std::string& why) {
  auto object = llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(bytes, "loop"));
  if (!object) {
    why = llvm::toString(object.takeError());
    return false;
  }
  const auto* elf = llvm::dyn_cast<ELF64LEObjectFile>(object->get());
  if (!elf) {
    why = "not a 64-bit ELF object";
    return false;
  }
  return Linker(*elf, blob, why).link(entry);
}

}  // namespace treadle::jit

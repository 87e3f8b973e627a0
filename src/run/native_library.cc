#include "run/native_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <new>
#include <system_error>
#include <vector>

#include "base/knobs.h"
#include "base/stack.h"
#include "base/thread_locals.h"

namespace treadle::run {

namespace {

constexpr char kLibrary[] = "libtreadle_jit.so";
constexpr size_t kCompilerStack = size_t{8} << 20;  // independent of the stack sizes that the process uses for its
                                                    // threads

// The folder of the file that this code is in.
std::string own_folder() {
  Dl_info info{};
  static const char anchor = 0;
  if (!dladdr(&anchor, &info) || !info.dli_fname) return {};
  std::string path = info.dli_fname;
  if (path.find('/') == std::string::npos) {
    char self[4096];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self);
    path.assign(self, n > 0 ? static_cast<size_t>(n) : 0);
  }
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

// Folders that hold one folder for each installed version: the package of the wheel treadle-jit beside the package
// treadle, or beside a package that has treadle's libonnxruntime.so in a folder inside; and the folder that `cmake
// --install` makes, as seen from the library, from the tool, and from a binary with the engine linked in (Python's
// extension, programs with the static library).
std::vector<std::string> folders_of_versions() {
  const std::string folder = own_folder();
  return {folder + "/../treadle_jit", folder + "/../../treadle_jit", folder + "/treadle",
          folder + "/" TREADLE_TOOL_TO_LIBDIR "/treadle", TREADLE_LIBDIR "/treadle"};
}

// The readable paths at which the library is, or would be.
std::vector<std::string> libraries() {
  std::vector<std::string> places;
  if (const char* forced = environment("TREADLE_JIT_LIBRARY")) {
    places.emplace_back(forced);
  } else {
    const std::string folder = own_folder();
    places = {folder, folder + "/../lib"};  // beside this code, or where a build folder has it
    for (std::string& versions : folders_of_versions()) places.push_back(std::move(versions) + "/" TREADLE_VERSION);
    for (std::string& place : places) place.append("/").append(kLibrary);
  }
  std::erase_if(places, [](const std::string& path) { return access(path.c_str(), R_OK) != 0; });
  return places;
}

// The folder of an installed library of another version, if this version has none.
std::string another_version() {
  if (environment("TREADLE_JIT_LIBRARY")) return {};
  for (const std::string& versions : folders_of_versions()) {
    std::error_code broken;
    for (std::filesystem::directory_iterator at(versions, broken), end; !broken && at != end; at.increment(broken)) {
      const std::filesystem::path& version = at->path();
      const std::string path = version / kLibrary;
      if (access(path.c_str(), R_OK) != 0) continue;
      return fmt::format("{} is of treadle {}, and this is treadle {}: install treadle-jit=={}", path,
                         version.filename().string(), TREADLE_VERSION, TREADLE_VERSION);
    }
  }
  return {};
}

const plan::NativeCompiler* open_compiler(std::string& why) {
  for (const std::string& path : libraries()) {
    if (std::string broken = why_not_whole(path); !broken.empty()) {
      why = std::move(broken);
      continue;
    }
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      const char* reason = dlerror();
      why = reason ? reason : path + " cannot be loaded";
      continue;
    }
    auto* entry = reinterpret_cast<const plan::NativeCompiler* (*)()>(dlsym(library, plan::kNativeEntry));
    const plan::NativeCompiler* compiler = entry ? entry() : nullptr;
    if (compiler && compiler->version == plan::native_version()) return compiler;
    why = path + " belongs to another version of treadle";
  }
  if (why.empty()) why = another_version();
  if (why.empty()) why = std::string(kLibrary) + " is not installed";
  return nullptr;
}

struct Opened {
  const plan::NativeCompiler* compiler = nullptr;
  std::string why;
};

// Reads `count` elements of the file at `offset`.
template <class T>
bool read_at(int file, uint64_t offset, T* to, size_t count = 1) {
  return pread(file, to, count * sizeof(T), static_cast<off_t>(offset)) == static_cast<ssize_t>(count * sizeof(T));
}

// Whether [offset, offset + bytes) lies within `size` bytes.
bool lies_inside(uint64_t offset, uint64_t bytes, uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

std::string why_not_whole(int file, uint64_t size) {
  ElfW(Ehdr) head{};
  if (!read_at(file, 0, &head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return "is no shared object";
  if (head.e_phentsize != sizeof(ElfW(Phdr)) || head.e_phnum == 0) return "is no shared object";
  std::vector<ElfW(Phdr)> segments(head.e_phnum);
  bool whole = read_at(file, head.e_phoff, segments.data(), segments.size());
  for (const ElfW(Phdr) & segment : segments) whole &= lies_inside(segment.p_offset, segment.p_filesz, size);
  // The table of sections is the last thing in a file. It is missing if room for the file was reserved and writing
  // never reached the end.
  ElfW(Shdr) names{};
  if (whole && head.e_shoff > 0) {
    whole = lies_inside(head.e_shoff, uint64_t{head.e_shnum} * head.e_shentsize, size) &&
            head.e_shstrndx < head.e_shnum &&
            read_at(file, head.e_shoff + uint64_t{head.e_shstrndx} * head.e_shentsize, &names) &&
            names.sh_type == SHT_STRTAB && lies_inside(names.sh_offset, names.sh_size, size);
  }
  return whole ? "" : fmt::format("is cut short: it has {} bytes, and says of itself that there are more", size);
}

}  // namespace

std::string why_not_whole(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return fmt::format("{} cannot be opened: {}", path, std::strerror(errno));
  struct stat info{};
  std::string why = fstat(file, &info) == 0 && S_ISREG(info.st_mode)
                        ? why_not_whole(file, static_cast<uint64_t>(info.st_size))
                        : "is not a file";
  close(file);
  return why.empty() ? why : path + " " + why;
}

InstalledCompiler find_installed_compiler() {
  InstalledCompiler found;
  const std::vector<std::string> places = libraries();
  if (places.empty()) found.another_version = another_version();
  for (const std::string& path : places) {
    found.damage = why_not_whole(path);
    if (found.damage.empty()) break;
  }
  return found;
}

const plan::NativeCompiler* native_compiler(std::string& why) {
  // never destroyed: a thread may still be compiling while the process ends
  static const auto* opened = [] {
    auto* made = new Opened;
    made->compiler = open_compiler(made->why);
    return made;
  }();
  if (!opened->compiler) why = opened->why;
  return opened->compiler;
}

bool compile_apart(const plan::NativeCompiler& compiler, const plan::NativeRequest& request, plan::NativeBlob& blob,
                   std::string& why) {
  bool compiled = false, has_memory = false;
  const auto compile = [&] {
    has_memory = has_room_for_thread_locals(reinterpret_cast<const void*>(compiler.compile));
    if (has_memory) compiled = compiler.compile(request, blob, why);
  };
  const auto call = [](void* fn) { (*static_cast<decltype(compile)*>(fn))(); };
  const bool called = call_on_stack(kCompilerStack, call, const_cast<void*>(static_cast<const void*>(&compile)));
  if (!called || !has_memory) throw std::bad_alloc();
  return compiled;
}

}  // namespace treadle::run

#include "support/apart.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace treadle::test {

std::optional<std::string> told_apart(const std::function<std::string()>& call) {
  std::array<int, 2> ends = {};
  if (pipe(ends.data()) != 0) return std::nullopt;
  const pid_t child = fork();
  if (child == 0) {
    const std::string text = call();
    for (size_t written = 0; written < text.size();) {
      const ssize_t count = write(ends[1], text.data() + written, text.size() - written);
      if (count <= 0) _exit(1);
      written += static_cast<size_t>(count);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string told;
  std::array<char, 4096> piece = {};
  for (ssize_t count = 0; (count = read(ends[0], piece.data(), piece.size())) > 0;) {
    told.append(piece.data(), static_cast<size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return told;
}

}  // namespace treadle::test

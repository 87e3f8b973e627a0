#pragma once
// Text of a C file, line by line, with indentation.

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace treadle::c {

class Text {
 public:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    add(fmt::format(format, std::forward<Args>(args)...));
  }
  // A line that ends with a brace; lines up to close() are indented.
  template <class... Args>
  void open(fmt::format_string<Args...> format, Args&&... args) {
    std::string head = fmt::format(format, std::forward<Args>(args)...);
    add(head.empty() ? "{" : head + " {");
    ++depth_;
  }
  void close(std::string_view tail = {}) {
    --depth_;
    add(fmt::format("}}{}", tail));
  }
  void otherwise() {
    --depth_;
    open("}} else");
  }
  void blank() {
    if (!text_.empty() && !text_.ends_with("\n\n")) text_ += '\n';
  }
  // Text of whole lines.
  void append(std::string_view lines) { text_ += lines; }

  int depth() const { return depth_; }
  void set_depth(int depth) { depth_ = depth; }
  const std::string& str() const { return text_; }

 private:
  void add(std::string_view content) {
    text_.append(static_cast<size_t>(depth_) * 2, ' ').append(content).push_back('\n');
  }

  std::string text_;
  int depth_ = 0;
};

}  // namespace treadle::c

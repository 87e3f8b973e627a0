#include "terminal.h"

#include <langinfo.h>
#include <locale.h>  // NOLINT(modernize-deprecated-headers): newlocale is of POSIX
#include <sys/ioctl.h>

#include <string_view>

namespace cli {

size_t terminal_width(int descriptor, size_t otherwise) {
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : otherwise;
}

bool shows_utf8() {
  const locale_t locale = newlocale(LC_CTYPE_MASK, "", locale_t{});
  if (locale == locale_t{}) return false;
  const bool is_utf8 = nl_langinfo_l(CODESET, locale) == std::string_view("UTF-8");
  freelocale(locale);
  return is_utf8;
}

}  // namespace cli

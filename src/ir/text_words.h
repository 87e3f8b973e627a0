#pragma once
// Spelling of names, strings and numbers in ONNX text.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wire/onnx.h"

namespace treadle::ir {

void put_name(std::string& out, std::string_view name);  // in quotes if needed
void put_word(std::string& out, std::string_view word);  // in quotes if needed, where no word has a meaning of its own
void put_dotted(std::string& out, std::string_view name);  // a.b.c
// In an annotation, which is one line, line ends become \n and \r. Bytes that are not UTF-8 become hex"00ff".
void put_string(std::string& out, std::string_view text, bool in_notes = false);
void put_pairs(std::string& out, const wire::List<wire::StringStringEntry>& pairs, bool in_notes = false);
void put_hex(std::string& out, std::string_view bytes);
// The shortest number that parses to the same value. An unusual NaN is printed with its bits.
void put_number(std::string& out, float value);
void put_number(std::string& out, double value);
void put_number(std::string& out, int64_t value);
void put_number(std::string& out, uint64_t value);

}  // namespace treadle::ir

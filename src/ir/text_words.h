#pragma once
// How names, strings and numbers are spelled in ONNX text.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wire/onnx.h"

namespace treadle::ir {

void put_name(std::string& out, std::string_view name);    // quoted where it has to be
void put_word(std::string& out, std::string_view word);    // the same where no word means something else
void put_dotted(std::string& out, std::string_view name);  // a.b.c
// In an annotation, which is one line, \n and \r stand for line ends. What is no text becomes hex"00ff".
void put_string(std::string& out, std::string_view text, bool in_notes = false);
void put_pairs(std::string& out, const wire::List<wire::StringStringEntry>& pairs, bool in_notes = false);
void put_hex(std::string& out, std::string_view bytes);
// The shortest number that reads back the same; a NaN other than the usual ones with its bits.
void put_number(std::string& out, float value);
void put_number(std::string& out, double value);
void put_number(std::string& out, int64_t value);
void put_number(std::string& out, uint64_t value);

}  // namespace treadle::ir

#pragma once
// Files that outputs are written to.

#include <string>
#include <vector>

#include "treadle/treadle.hpp"

namespace cli {

struct OutFile {
  size_t output;
  std::string path;
};

// Parses "NAME=FILE", or files for the outputs in order. UsageError for an unknown name, a file that is neither .npy
// nor .pb, or more than one for standard output ("-").
std::vector<OutFile> out_files(const std::vector<std::string>& arguments, const std::vector<std::string>& names);
// Whether a value goes to standard output, which then gets nothing else. UsageError with `json`.
bool takes_output(const std::vector<OutFile>& files, bool json);
void write_output(const OutFile& file, const std::string& name, const treadle::Value& value);

}  // namespace cli

// No serialised model begins in any of these ways: its first field would have a number or a kind that ModelProto does
// not have, or it would be text that the syntax of models excludes.
#include "model/other_formats.h"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace treadle::model {

namespace {

using namespace std::string_view_literals;

struct Format {
  size_t at;
  std::string_view magic, what;
};

constexpr Format kFormats[] = {
    {0, "version https://git-lfs.github.com/spec/"sv,
     "a git-lfs pointer, which stands for the file; get the file itself with \"git lfs pull\""sv},
    {0, "\x1f\x8b"sv, "a gzip archive; unpack it first"sv},
    {0,
     "\xfd"
     "7zXZ\0"sv,
     "an xz archive; unpack it first"sv},
    {0, "BZh"sv, "a bzip2 archive; unpack it first"sv},
    {0, "\x28\xb5\x2f\xfd"sv, "a zstd archive; unpack it first"sv},
    {0, "7z\xbc\xaf\x27\x1c"sv, "a 7z archive; unpack it first"sv},
    {257, "ustar"sv, "a tar archive; unpack it first"sv},
    {4, "TFL3"sv, "a TFLite model; convert it to ONNX (tf2onnx does)"sv},
    {0, "\x89HDF\r\n\x1a\n"sv, "an HDF5 file, as Keras writes models; convert it to ONNX (tf2onnx does)"sv},
    {0, "GGUF"sv, "a GGUF file: weights without a graph"sv},
    {0, "\x93NUMPY"sv, "an array of numpy (.npy)"sv},
    {0, "RIFF"sv, "a RIFF file, as recordings (.wav) are"sv},
    {0, "\x89PNG"sv, "a PNG image"sv},
    {0, "\xff\xd8\xff"sv, "a JPEG image"sv},
    {0, "%PDF"sv, "a PDF document"sv},
    {0,
     "\x7f"
     "ELF"sv,
     "a program or library (ELF)"sv},
    {0, "\xff\xfe"sv, "a text in UTF-16; ONNX text is UTF-8"sv},
    {0, "\xfe\xff"sv, "a text in UTF-16; ONNX text is UTF-8"sv},
};

// The list of an archive's members is at its end.
std::string_view zip_format(std::string_view bytes) {
  constexpr size_t kDirectory = size_t{256} << 10;
  const std::string_view end = bytes.substr(bytes.size() - std::min(bytes.size(), kDirectory));
  const auto has_member = [&](std::string_view name) { return end.find(name) != std::string_view::npos; };
  if (has_member("constants.pkl")) return "a TorchScript model; export it with torch.onnx.export";
  if (has_member("data.pkl")) return "a PyTorch checkpoint (a zip of pickles); export the model with torch.onnx.export";
  if (has_member(".npyPK")) return "arrays of numpy (.npz)";
  return "a zip archive; unpack it first";
}

bool is_pickle(std::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5;
}

// A safetensors file begins with the size of a header, and a header in JSON.
bool is_safetensors(std::string_view bytes) {
  uint64_t header = 0;
  if (bytes.size() < sizeof header + 2) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  return header <= bytes.size() - sizeof header && bytes.substr(sizeof header, 2) == "{\"";
}

std::string_view without_blanks(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

bool begins_with_word(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() && std::equal(lower.begin(), lower.end(), text.begin(), [](char a, char b) {
           return a == std::tolower(static_cast<unsigned char>(b));
         });
}

// Whether the bytes are text from the first one on, and not that of a model.
bool is_other_text(std::string_view bytes, std::string_view text) {
  const auto is_character = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 ? byte != 0x7f : byte >= 0x09 && byte <= 0x0d;
  };
  return !text.empty() && text[0] != '<' && text[0] != '#' && std::all_of(text.begin(), text.end(), is_character) &&
         bytes.find("=>") == std::string_view::npos;
}

std::string_view text_format(std::string_view bytes) {
  const std::string_view text = without_blanks(bytes.substr(0, 4096));
  for (const std::string_view begin : {"<!doctype html"sv, "<html"sv, "<head"sv, "<body"sv, "<!--"sv}) {
    if (begins_with_word(text, begin)) return "an HTML page; was it saved from a page about the file?";
  }
  if (begins_with_word(text, "<?xml")) return "an XML document";
  if (text.starts_with('{')) return "a JSON text";
  if (is_other_text(bytes, text)) return "a text that is no ONNX text; is it the message of a download that failed?";
  return {};
}

bool is_all_zeros(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0; });
}

}  // namespace

std::string_view other_format(std::string_view bytes) {
  if (bytes.empty()) return "an empty file";
  for (const Format& format : kFormats) {
    if (bytes.size() >= format.at && bytes.substr(format.at).starts_with(format.magic)) return format.what;
  }
  if (bytes.starts_with("PK\3\4") || bytes.starts_with("PK\5\6")) return zip_format(bytes);
  if (is_pickle(bytes)) return "a pickle, as PyTorch's old checkpoints are; export the model with torch.onnx.export";
  if (is_safetensors(bytes)) return "a safetensors file: weights without a graph";
  if (is_all_zeros(bytes.substr(0, 4096))) return "zeros; was its download or copy cut off?";
  return text_format(bytes);
}

Status refuse_other_formats(std::string_view bytes) {
  const std::string_view found = other_format(bytes);
  if (found.empty()) return {};
  return error(Code::kInvalidFile, "expected an ONNX model, found {}", found);
}

}  // namespace treadle::model

#include "wave.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "common.h"

namespace cli {

using treadle::Value;

namespace {

template <class T>
T load(std::string_view bytes, size_t at) {
  T value{};
  if (at + sizeof(T) <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

double sample(std::string_view data, size_t at, int bits, bool is_float) {
  switch (bits) {
    case 8:
      return (static_cast<uint8_t>(data[at]) - 128) / 128.0;
    case 16:
      return load<int16_t>(data, at) / 32768.0;
    case 24: {
      const auto high = static_cast<int8_t>(data[at + 2]);
      return (high * 65536 + load<uint16_t>(data, at)) / 8388608.0;
    }
    case 64:
      return load<double>(data, at);
    default:
      return is_float ? static_cast<double>(load<float>(data, at)) : load<int32_t>(data, at) / 2147483648.0;
  }
}

// Of the contents of a chunk "fmt ".
WaveFormat format_of(std::string_view chunk, const std::string& name) {
  constexpr int kPcm = 1, kFloat = 3, kExtensible = 0xfffe;  // kExtensible: the format stands further on
  int format = load<uint16_t>(chunk, 0);
  if (format == kExtensible && chunk.size() >= 26) format = load<uint16_t>(chunk, 24);
  const WaveFormat wave{.channels = load<uint16_t>(chunk, 2),
                        .rate = load<int32_t>(chunk, 4),
                        .bits = load<uint16_t>(chunk, 14),
                        .is_float = format == kFloat};
  const bool is_pcm = format == kPcm && (wave.bits == 8 || wave.bits == 16 || wave.bits == 24 || wave.bits == 32);
  const bool is_float = wave.is_float && (wave.bits == 32 || wave.bits == 64);
  if (wave.channels < 1 || !(is_pcm || is_float)) {
    throw InputError(
        fmt::format("{}: format {} with {} bits is not read; PCM of 8 to 32 bits and floats of 32 or 64 are", name,
                    format, wave.bits));
  }
  return wave;
}

}  // namespace

WaveFormat read_wave_head(const ReadBytes& read, const std::string& name, size_t& data_bytes) {
  const std::string riff = read(12);
  if (riff.size() < 12 || !riff.starts_with("RIFF") || riff.substr(8) != "WAVE") {
    throw InputError(fmt::format("{}: no wave file", name));
  }
  WaveFormat format{.channels = 0};
  for (std::string head = read(8); head.size() == 8; head = read(8)) {
    const auto size = load<uint32_t>(head, 4);
    if (head.starts_with("data")) {
      if (format.channels == 0) throw InputError(fmt::format("{}: the format is missing before the samples", name));
      data_bytes = size;
      return format;
    }
    const std::string chunk = read(size_t{size} + size % 2);
    if (head.starts_with("fmt ")) format = format_of(chunk, name);
  }
  throw InputError(fmt::format("{}: a wave file without samples", name));
}

Value samples_of(const WaveFormat& format, std::string_view frames) {
  const auto channels = static_cast<size_t>(format.channels), width = static_cast<size_t>(format.bits) / 8;
  const size_t count = frames.size() / format.frame_bytes();
  const auto samples = static_cast<int64_t>(count);
  Value value =
      Value::tensor(1, channels == 1 ? std::vector<int64_t>{samples} : std::vector<int64_t>{format.channels, samples});
  float* out = value.mutable_data<float>();
  for (size_t c = 0; c < channels; ++c) {
    for (size_t i = 0; i < count; ++i) {
      out[c * count + i] = static_cast<float>(sample(frames, (i * channels + c) * width, format.bits, format.is_float));
    }
  }
  return value;
}

Wave read_wav(std::string_view bytes, const std::string& name) {
  size_t at = 0, size = 0;
  const auto read = [&](size_t count) {
    const std::string_view part = bytes.substr(std::min(at, bytes.size()), count);
    at += part.size();
    return std::string(part);
  };
  const WaveFormat format = read_wave_head(read, name, size);
  return {samples_of(format, bytes.substr(at, size)), format.rate};
}

}  // namespace cli

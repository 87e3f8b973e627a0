#pragma once
// Samples of sound, in wave files and in pipes.

#include <functional>
#include <string>
#include <string_view>

#include "treadle/treadle.hpp"

namespace cli {

struct WaveFormat {
  int channels = 1, rate = 0, bits = 16;  // rate 0: unknown
  bool is_float = false;

  // One sample of each channel.
  size_t frame_bytes() const { return static_cast<size_t>(bits / 8) * static_cast<size_t>(channels); }
};

// The next bytes of a file or pipe: as many as asked for, fewer at its end.
using ReadBytes = std::function<std::string(size_t count)>;

// Reads a wave file up to its samples. `data_bytes`: how many bytes of samples it claims to have; a program that writes
// to a pipe does not know, and claims any number. Errors: InputError, with `name` in front.
WaveFormat read_wave_head(const ReadBytes& read, const std::string& name, size_t& data_bytes);

// Frames as float in [-1, 1): [samples], or [channels, samples].
treadle::Value samples_of(const WaveFormat& format, std::string_view frames);

// PCM of 8, 16, 24 or 32 bits, or floats of 32 or 64.
struct Wave {
  treadle::Value samples;
  int rate = 0;
};
Wave read_wav(std::string_view bytes, const std::string& name);

}  // namespace cli

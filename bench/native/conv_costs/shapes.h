#pragma once
// Shapes of convolutions to time.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/conv.h"

namespace treadle::kernels {

int64_t product(const Spatial& sizes, int axes);

// Shapes as networks over images, speech and other signals have them, `rounds` of each kind. Each call draws others.
std::vector<ConvShape> drawn_shapes(int rounds);

// "C n1 16>32 g1 [20>25 k3 s1 d1 p1] [20>25 k3 s1 d1 p1]": Conv (C) or ConvTranspose (T), batch, channels, groups; and
// of each axis the sizes of input and output, the kernel, its stride and dilation, and the padding at the front.
std::string text(const ConvShape& shape);
std::optional<ConvShape> parsed(const char* line);

}  // namespace treadle::kernels

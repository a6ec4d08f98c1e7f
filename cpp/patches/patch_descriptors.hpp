// Square patches of an image as vectors: resampled colours, HSL and their Haar wavelets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace evergrow {

// A patch has as many cells along each side, whatever its size in the image.
constexpr std::size_t kPatchSide = 16;
constexpr std::size_t kPatchPixels = kPatchSide * kPatchSide;
constexpr std::size_t kPatchChannels = 3;
constexpr std::size_t kPatchValues = kPatchPixels * kPatchChannels;

// Rows of red, green and blue bytes.
struct Picture {
    const std::uint8_t* pixels;
    std::size_t height;
    std::size_t width;
};

// Left, top and side in pixels; it lies inside the picture.
struct PatchBox {
    std::int32_t x;
    std::int32_t y;
    std::int32_t size;
};

// Boxes from triples of left, top and side. Throws std::invalid_argument if one is not inside the
// picture.
std::vector<PatchBox> read_boxes(const Picture& picture, const std::int32_t* triples,
                                 std::size_t n_boxes);

// What is made of the colours of one patch. `planes` holds red, green and blue in [0, 1], one
// plane of 16 x 16 after the other; `values` has room for kPatchValues.
using PatchDescriptor = void (*)(const float* planes, float* values);

// "rgb": the colours, channel by channel for each cell. "hsl": hue, saturation and lightness in
// [0, 1], one plane after the other. "haar": the orthonormal Haar wavelet transform of those
// planes, four levels, coarse to fine from the top left corner. nullptr for any other name.
PatchDescriptor patch_descriptor_named(const char* name);

// One row of kPatchValues for each box. The colour of a cell is the mean of the picture over it,
// pixels being squares of one colour: a cell takes its share of those it cuts. In patches of fewer
// than 16 pixels a cell is smaller than a pixel, and the same mean mixes the pixels it touches.
void describe_patches(const Picture& picture, const PatchBox* boxes, std::size_t n_boxes,
                      PatchDescriptor descriptor, float* values);

}  // namespace evergrow

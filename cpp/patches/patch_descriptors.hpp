// Descriptors of square image patches: resampled colours, HSL and their Haar wavelets
// [Moosmann2006 Sec. 3].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace evergrow {

// Every patch is resampled to this many cells along each side.
constexpr std::size_t kPatchSide = 16;
constexpr std::size_t kPatchPixels = kPatchSide * kPatchSide;
constexpr std::size_t kPatchChannels = 3;
constexpr std::size_t kPatchValues = kPatchPixels * kPatchChannels;

// Pixels of red, green and blue bytes, row by row.
struct Image {
    const std::uint8_t* pixels;
    std::size_t height;
    std::size_t width;
};

// Left, top and side in pixels; inside the image.
struct PatchBox {
    std::int32_t x;
    std::int32_t y;
    std::int32_t size;
};

// Boxes from triples of left, top and side. Throws std::invalid_argument if one is not inside the
// image.
std::vector<PatchBox> read_boxes(const Image& image, const std::int32_t* triples,
                                 std::size_t n_boxes);

// Computes the descriptor of one patch. `planes` are red, green and blue in [0, 1], one 16 x 16
// plane each; `values` has space for kPatchValues.
using PatchDescriptor = void (*)(const float* planes, float* values);

// "rgb": the colours of each cell. "hsl": planes of hue, saturation and lightness in [0, 1].
// "haar": the orthonormal Haar wavelet transform of these planes, four levels, coarse to fine from
// the top left corner. nullptr for any other name.
PatchDescriptor patch_descriptor_named(const char* name);

// Computes one row of kPatchValues per box. The colour of a cell is the mean of the image over its
// area, where pixels are squares of one colour. This also holds for patches smaller than 16 pixels,
// whose cells are smaller than a pixel.
void describe_patches(const Image& image, const PatchBox* boxes, std::size_t n_boxes,
                      PatchDescriptor descriptor, float* values);

}  // namespace evergrow

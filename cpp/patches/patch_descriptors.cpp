#include "patches/patch_descriptors.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace evergrow {
namespace {

constexpr std::size_t kEdges = kPatchSide + 1;

// An integral image: sums of the colours above and to the left of every corner between pixels. Sum
// is an integer type that can represent the sum of the whole image.
template <class Sum>
class IntegralImage {
  public:
    explicit IntegralImage(const Image& image)
        : stride_((image.width + 1) * kPatchChannels), sums_(stride_ * (image.height + 1)) {
        for (std::size_t y = 0; y < image.height; ++y) {
            const std::uint8_t* pixels = image.pixels + y * image.width * kPatchChannels;
            const Sum* above = sums_.data() + y * stride_;
            Sum* here = sums_.data() + (y + 1) * stride_;
            Sum row[kPatchChannels] = {};
            for (std::size_t x = 0; x < image.width; ++x)
                for (std::size_t c = 0; c < kPatchChannels; ++c) {
                    const std::size_t at = x * kPatchChannels + c;
                    row[c] += pixels[at];
                    here[at + kPatchChannels] = above[at + kPatchChannels] + row[c];
                }
        }
    }

    const Sum* row(std::size_t y) const { return sums_.data() + y * stride_; }

    std::size_t stride() const { return stride_; }

  private:
    std::size_t stride_;
    std::vector<Sum> sums_;
};

// The edge of a cell: a pixel, and sixteenths of a pixel after its start.
struct Edge {
    std::size_t pixel;
    double sixteenths;
};

void place_edges(std::int32_t first, std::int32_t size, Edge* edges) {
    for (std::size_t k = 0; k < kEdges; ++k) {
        const std::size_t along = k * static_cast<std::size_t>(size);
        edges[k] = {static_cast<std::size_t>(first) + along / kPatchSide,
                    static_cast<double>(along % kPatchSide)};
    }
}

// Sums up to one horizontal edge and every vertical one, times 256. All values are integers, so
// doubles are exact and equal colours stay equal: rounding errors would give grey a hue.
template <class Sum>
void sums_at_edge(const IntegralImage<Sum>& integral, const Edge& y, const Edge* columns,
                  double* sums) {
    const Sum* upper = integral.row(y.pixel);
    // An edge on a pixel border needs no next pixel, and at the image border there is none.
    const Sum* lower = y.sixteenths > 0 ? upper + integral.stride() : upper;
    for (std::size_t k = 0; k < kEdges; ++k) {
        const std::size_t left = columns[k].pixel * kPatchChannels;
        const std::size_t right = columns[k].sixteenths > 0 ? left + kPatchChannels : left;
        const double share = columns[k].sixteenths;
        for (std::size_t c = 0; c < kPatchChannels; ++c) {
            const double at_left =
                16.0 * static_cast<double>(upper[left + c]) +
                y.sixteenths * static_cast<double>(lower[left + c] - upper[left + c]);
            const double at_right =
                16.0 * static_cast<double>(upper[right + c]) +
                y.sixteenths * static_cast<double>(lower[right + c] - upper[right + c]);
            sums[k * kPatchChannels + c] = 16.0 * at_left + share * (at_right - at_left);
        }
    }
}

// Mean colours of the cells in [0, 1], one plane per channel.
template <class Sum>
void resample(const IntegralImage<Sum>& integral, const PatchBox& box, float* planes) {
    Edge rows[kEdges];
    Edge columns[kEdges];
    place_edges(box.y, box.size, rows);
    place_edges(box.x, box.size, columns);
    // A cell has size^2 / 256 pixels, and its sum is scaled by 256.
    const double whole = 255.0 * static_cast<double>(box.size) * static_cast<double>(box.size);
    double sums[2][kEdges * kPatchChannels];
    sums_at_edge(integral, rows[0], columns, sums[0]);
    for (std::size_t i = 0; i < kPatchSide; ++i) {
        const double* above = sums[i % 2];
        double* below = sums[(i + 1) % 2];
        sums_at_edge(integral, rows[i + 1], columns, below);
        double strips[kEdges * kPatchChannels];
        for (std::size_t k = 0; k < kEdges * kPatchChannels; ++k) strips[k] = below[k] - above[k];
        for (std::size_t j = 0; j < kPatchSide; ++j)
            for (std::size_t c = 0; c < kPatchChannels; ++c) {
                const std::size_t at = j * kPatchChannels + c;
                const double cell = strips[at + kPatchChannels] - strips[at];
                planes[c * kPatchPixels + i * kPatchSide + j] = static_cast<float>(cell / whole);
            }
    }
}

void interleave(const float* planes, float* values) {
    for (std::size_t p = 0; p < kPatchPixels; ++p)
        for (std::size_t c = 0; c < kPatchChannels; ++c)
            values[p * kPatchChannels + c] = planes[c * kPatchPixels + p];
}

// The hue of grey is 0, and the saturation of black and white is 0.
void to_hsl(const float* planes, float* values) {
    const float* red = planes;
    const float* green = planes + kPatchPixels;
    const float* blue = planes + 2 * kPatchPixels;
    float* hue = values;
    float* saturation = values + kPatchPixels;
    float* lightness = values + 2 * kPatchPixels;
    for (std::size_t p = 0; p < kPatchPixels; ++p) {
        const float r = red[p];
        const float g = green[p];
        const float b = blue[p];
        const float most = std::max(r, std::max(g, b));
        const float least = std::min(r, std::min(g, b));
        const float chroma = most - least;
        // Divisors are never 0, so that the loop needs no branches and can be vectorised.
        const float divisor = chroma > 0.0F ? chroma : 1.0F;
        const float from_red = (g - b) / divisor;
        const float from_green = (b - r) / divisor + 2.0F;
        const float from_blue = (r - g) / divisor + 4.0F;
        float sixths = most == g ? from_green : from_blue;
        sixths = most == r ? from_red : sixths;
        sixths = chroma > 0.0F ? sixths : 0.0F;
        const float around = sixths + 6.0F;
        hue[p] = (sixths < 0.0F ? around : sixths) / 6.0F;
        const float room = std::min(most + least, (2.0F - most) - least);
        saturation[p] = std::min(chroma / (room > 0.0F ? room : 1.0F), 1.0F);
        lightness[p] = (most + least) / 2.0F;
    }
}

// One level of the Haar transform of the top left corner of a plane: means to the top left, row
// differences to the right, column differences below, and differences of both to the bottom right.
// Two orthonormal steps are half of a sum of four, which is exact.
template <std::size_t side>
void haar_level(const float* plane, float* means, float* values) {
    constexpr std::size_t half = side / 2;
    for (std::size_t i = 0; i < half; ++i) {
        const float* upper = plane + 2 * i * side;
        const float* lower = upper + side;
        float* top = values + i * kPatchSide;
        float* bottom = top + half * kPatchSide;
        for (std::size_t j = 0; j < half; ++j) {
            const float a = upper[2 * j];
            const float b = upper[2 * j + 1];
            const float c = lower[2 * j];
            const float d = lower[2 * j + 1];
            means[i * half + j] = 0.5F * ((a + b) + (c + d));
            top[half + j] = 0.5F * ((a - b) + (c - d));
            bottom[j] = 0.5F * ((a + b) - (c + d));
            bottom[half + j] = 0.5F * ((a - b) - (c - d));
        }
    }
}

void to_haar(const float* planes, float* values) {
    float hsl[kPatchValues];
    to_hsl(planes, hsl);
    for (std::size_t c = 0; c < kPatchChannels; ++c) {
        float* result = values + c * kPatchPixels;
        float eight[64];
        float four[16];
        float two[4];
        haar_level<16>(hsl + c * kPatchPixels, eight, result);
        haar_level<8>(eight, four, result);
        haar_level<4>(four, two, result);
        haar_level<2>(two, result, result);
    }
}

template <class Sum>
void describe(const Image& image, const PatchBox* boxes, std::size_t n_boxes,
              PatchDescriptor descriptor, float* values) {
    const IntegralImage<Sum> integral(image);
    float planes[kPatchValues];
    for (std::size_t i = 0; i < n_boxes; ++i) {
        resample(integral, boxes[i], planes);
        descriptor(planes, values + i * kPatchValues);
    }
}

struct Named {
    const char* name;
    PatchDescriptor descriptor;
};
constexpr Named kDescriptors[] = {{"rgb", interleave}, {"hsl", to_hsl}, {"haar", to_haar}};

}  // namespace

std::vector<PatchBox> read_boxes(const Image& image, const std::int32_t* triples,
                                 std::size_t n_boxes) {
    const auto fits = [](std::int64_t first, std::int64_t size, std::size_t all) {
        return first >= 0 && size >= 1 && first + size <= static_cast<std::int64_t>(all);
    };
    std::vector<PatchBox> boxes;
    boxes.reserve(n_boxes);
    for (std::size_t i = 0; i < n_boxes; ++i) {
        const PatchBox box{triples[3 * i], triples[3 * i + 1], triples[3 * i + 2]};
        if (!fits(box.x, box.size, image.width) || !fits(box.y, box.size, image.height))
            throw std::invalid_argument("box " + std::to_string(i) + " leaves the image");
        boxes.push_back(box);
    }
    return boxes;
}

PatchDescriptor patch_descriptor_named(const char* name) {
    for (const Named& entry : kDescriptors)
        if (std::strcmp(entry.name, name) == 0) return entry.descriptor;
    return nullptr;
}

void describe_patches(const Image& image, const PatchBox* boxes, std::size_t n_boxes,
                      PatchDescriptor descriptor, float* values) {
    // 32-bit sums, for up to 8 million pixels, need half the memory.
    constexpr std::size_t most = std::numeric_limits<std::int32_t>::max() / 255;
    if (image.height * image.width <= most)
        describe<std::int32_t>(image, boxes, n_boxes, descriptor, values);
    else
        describe<std::int64_t>(image, boxes, n_boxes, descriptor, values);
}

}  // namespace evergrow

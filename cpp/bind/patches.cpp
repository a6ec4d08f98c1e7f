// Descriptors of image patches.
#include <nanobind/stl/string.h>

#include <stdexcept>
#include <string>

#include "bind/module.hpp"
#include "bind/numpy.hpp"
#include "patches/patch_descriptors.hpp"

using namespace nb::literals;

namespace evergrow {
namespace {

using Pixels = nb::ndarray<const std::uint8_t, nb::shape<-1, -1, kPatchChannels>, nb::c_contig,
                           nb::device::cpu>;
using Boxes = nb::ndarray<const std::int32_t, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;

NumpyMatrix<float> describe_patches_of(const Pixels& pixels, const Boxes& boxes,
                                       const std::string& descriptor) {
    const PatchDescriptor chosen = patch_descriptor_named(descriptor.c_str());
    if (chosen == nullptr) throw std::invalid_argument("unknown descriptor '" + descriptor + "'");
    const Image image{pixels.data(), pixels.shape(0), pixels.shape(1)};
    const std::vector<PatchBox> inside = read_boxes(image, boxes.data(), boxes.shape(0));
    float* data = new float[inside.size() * kPatchValues];
    const nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<float*>(p); });
    {
        const nb::gil_scoped_release release;
        describe_patches(image, inside.data(), inside.size(), chosen, data);
    }
    return NumpyMatrix<float>(data, {inside.size(), kPatchValues}, owner);
}

}  // namespace

void bind_patches(nb::module_& m) {
    m.def("describe_patches", &describe_patches_of, "image"_a, "boxes"_a, "descriptor"_a);
}

}  // namespace evergrow

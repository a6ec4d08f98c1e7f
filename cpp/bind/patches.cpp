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

NumpyMatrix<float> describe_patches_of(const Pixels& image, const Boxes& boxes,
                                       const std::string& descriptor) {
    const PatchDescriptor chosen = patch_descriptor_named(descriptor.c_str());
    if (chosen == nullptr) throw std::invalid_argument("no descriptor is called " + descriptor);
    const Picture picture{image.data(), image.shape(0), image.shape(1)};
    const std::vector<PatchBox> inside = read_boxes(picture, boxes.data(), boxes.shape(0));
    float* data = new float[inside.size() * kPatchValues];
    const nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<float*>(p); });
    {
        const nb::gil_scoped_release release;
        describe_patches(picture, inside.data(), inside.size(), chosen, data);
    }
    return NumpyMatrix<float>(data, {inside.size(), kPatchValues}, owner);
}

}  // namespace

void bind_features(nb::module_& m) {
    m.def("describe_patches", &describe_patches_of, "image"_a, "boxes"_a, "descriptor"_a);
}

}  // namespace evergrow

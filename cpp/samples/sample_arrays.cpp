#include "samples/sample_arrays.hpp"

#include <algorithm>

namespace evergrow {

bool all_within(const std::int32_t* numbers, std::size_t n, std::size_t limit) {
    return std::all_of(numbers, numbers + n, [limit](std::int32_t number) {
        return number >= 0 && static_cast<std::size_t>(number) < limit;
    });
}

bool all_at_least(const std::int32_t* numbers, std::size_t n, std::int32_t lowest) {
    return std::all_of(numbers, numbers + n,
                       [lowest](std::int32_t number) { return number >= lowest; });
}

bool all_stored(const Samples& samples, const std::int32_t* numbers, std::size_t n) {
    return std::all_of(numbers, numbers + n, [&](std::int32_t number) {
        return samples.class_of(number) != Samples::kRemoved;
    });
}

void gather_full(const Samples& samples, const std::int32_t* numbers, std::size_t n, float* out) {
    for (std::size_t i = 0; i < n; ++i, out += samples.n_features())
        std::copy_n(samples.full(numbers[i]), samples.n_features(), out);
}

void gather_half(const Samples& samples, const std::int32_t* numbers, std::size_t n,
                 std::uint16_t* out) {
    for (std::size_t i = 0; i < n; ++i, out += samples.n_features())
        std::copy_n(samples.half(numbers[i]), samples.n_features(), out);
}

std::vector<std::int32_t> all_classes(const Samples& samples) {
    std::vector<std::int32_t> classes(samples.size());
    for (std::size_t i = 0; i < classes.size(); ++i)
        classes[i] = samples.class_of(static_cast<std::int32_t>(i));
    return classes;
}

std::vector<std::int64_t> all_ids(const Samples& samples) {
    std::vector<std::int64_t> ids(samples.size());
    for (std::size_t i = 0; i < ids.size(); ++i)
        ids[i] = samples.id_of(static_cast<std::int32_t>(i));
    return ids;
}

std::vector<float> all_weights(const Samples& samples) {
    std::vector<float> weights(samples.size());
    for (std::size_t i = 0; i < weights.size(); ++i)
        weights[i] = samples.weight_of(static_cast<std::int32_t>(i));
    return weights;
}

}  // namespace evergrow

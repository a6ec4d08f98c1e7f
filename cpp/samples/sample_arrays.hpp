// Samples as plain arrays, and checks of row numbers and classes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "samples/samples.hpp"

namespace evergrow {

// Whether all numbers are from 0 to limit - 1.
bool all_within(const std::int32_t* numbers, std::size_t n, std::size_t limit);
bool all_at_least(const std::int32_t* numbers, std::size_t n, std::int32_t lowest);
// Whether none of these rows was removed.
bool all_stored(const Samples& samples, const std::int32_t* numbers, std::size_t n);
void gather_full(const Samples& samples, const std::int32_t* numbers, std::size_t n, float* out);
void gather_half(const Samples& samples, const std::int32_t* numbers, std::size_t n,
                 std::uint16_t* out);
std::vector<std::int32_t> all_classes(const Samples& samples);
std::vector<std::int64_t> all_ids(const Samples& samples);
std::vector<float> all_weights(const Samples& samples);

}  // namespace evergrow

// Number of rows of each class.
#pragma once

#include <cstdint>
#include <vector>

#include "samples/samples.hpp"
#include "tree/tree.hpp"

namespace evergrow {

// The rows must be sorted by class.
inline void count_classes(const Samples& samples, const std::vector<std::int32_t>& rows,
                          std::vector<ClassCount>& counts) {
    counts.clear();
    for (const std::int32_t row : rows) {
        const std::int32_t class_id = samples.class_of(row);
        if (counts.empty() || counts.back().class_id != class_id)
            counts.push_back(ClassCount{class_id, 0});
        ++counts.back().count;
    }
}

}  // namespace evergrow

// Training descriptors in column-major order, because growing reads a few features of many rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace evergrow {

class Descriptors {
  public:
    // Copies row-major values. Rows from `first_new` on are new to the trees; the trees have been
    // trained on the others.
    Descriptors(const float* rows, std::size_t n_rows, std::size_t n_features,
                const std::int32_t* classes, std::size_t first_new);

    std::size_t n_rows() const { return classes_.size(); }
    std::size_t n_features() const { return n_features_; }
    const float* column(std::size_t feature) const { return values_.data() + feature * n_rows(); }
    std::int32_t class_of(std::int32_t row) const {
        return classes_[static_cast<std::size_t>(row)];
    }
    bool is_new(std::int32_t row) const { return static_cast<std::size_t>(row) >= first_new_; }

    // All rows, sorted by class.
    const std::vector<std::int32_t>& by_class() const { return by_class_; }

  private:
    std::size_t n_features_;
    std::size_t first_new_;
    std::vector<std::int32_t> classes_;
    std::vector<std::int32_t> by_class_;
    std::vector<float> values_;
};

}  // namespace evergrow

// The training samples a forest refers to: standardised rows and the class of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "distance.hpp"
#include "standardize.hpp"

namespace evergrow {

class Samples {
  public:
    Samples(std::size_t n_features, std::size_t capacity);
    ~Samples();
    Samples(const Samples&) = delete;
    Samples& operator=(const Samples&) = delete;

    // Appends rows; there must be room.
    template <class T>
    void append(const T* rows, const std::int32_t* classes, std::size_t n_rows,
                const Standardizer& standardizer);

    std::size_t size() const { return classes_.size(); }
    std::size_t capacity() const { return capacity_; }
    std::size_t n_features() const { return n_features_; }
    std::size_t width() const { return width_; }
    std::size_t n_bytes() const { return bytes_ + classes_.capacity() * sizeof(std::int32_t); }
    const float* row(std::size_t i) const { return data_ + i * width_; }
    const std::vector<std::int32_t>& classes() const { return classes_; }

  private:
    std::size_t n_features_;
    std::size_t width_;
    std::size_t capacity_;
    std::size_t bytes_;
    float* data_;
    std::vector<std::int32_t> classes_;
};

}  // namespace evergrow

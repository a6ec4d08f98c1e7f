// Coarse and fine classes: a class is coarse and its own parent, or a fine one of a coarse class.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace evergrow {

// A sample has the finest class that is known of it, so a coarse class stands in the counts for
// the samples that were not refined.
class ClassHierarchy {
  public:
    // Flat: every class for itself.
    ClassHierarchy() = default;
    // By class its parent; throws std::invalid_argument if a parent has another parent.
    explicit ClassHierarchy(std::vector<std::int32_t> parents);

    bool is_flat() const { return parents_.empty(); }
    std::size_t size() const { return parents_.size(); }
    std::int32_t parent(std::int32_t c) const { return parents_[static_cast<std::size_t>(c)]; }
    bool is_coarse(std::int32_t c) const { return parent(c) == c; }
    // Whether a coarse class has fine ones.
    bool is_divided(std::int32_t c) const { return divided_[static_cast<std::size_t>(c)] != 0; }
    // Whether no class is finer: a fine one, or a coarse one that nobody has divided.
    bool is_finest(std::int32_t c) const { return !is_coarse(c) || !is_divided(c); }
    // Fine classes of a coarse one in order; itself if it is not divided.
    const std::vector<std::int32_t>& finest_of(std::int32_t c) const {
        return finest_of_[static_cast<std::size_t>(c)];
    }

  private:
    std::vector<std::int32_t> parents_;
    std::vector<std::uint8_t> divided_;
    std::vector<std::vector<std::int32_t>> finest_of_;
};

}  // namespace evergrow

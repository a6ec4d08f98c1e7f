// Coarse and fine classes. A coarse class is its own parent; the parent of a fine class is coarse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace evergrow {

// A sample has the finest class that is known for it, so the count of a coarse class is that of its
// samples without a fine class.
class ClassHierarchy {
  public:
    // Flat: no coarse classes.
    ClassHierarchy() = default;
    // The parent of every class. Throws std::invalid_argument if a parent is not coarse.
    explicit ClassHierarchy(std::vector<std::int32_t> parents);

    bool is_flat() const { return parents_.empty(); }
    std::size_t size() const { return parents_.size(); }
    std::int32_t parent(std::int32_t c) const { return parents_[static_cast<std::size_t>(c)]; }
    bool is_coarse(std::int32_t c) const { return parent(c) == c; }
    // Whether a coarse class has fine classes.
    bool is_divided(std::int32_t c) const { return divided_[static_cast<std::size_t>(c)] != 0; }
    // Whether a class is fine, or coarse without fine classes.
    bool is_finest(std::int32_t c) const { return !is_coarse(c) || !is_divided(c); }
    // The fine classes of a coarse class, in order; the class itself if it has none.
    const std::vector<std::int32_t>& finest_of(std::int32_t c) const {
        return finest_of_[static_cast<std::size_t>(c)];
    }

  private:
    std::vector<std::int32_t> parents_;
    std::vector<std::uint8_t> divided_;
    std::vector<std::vector<std::int32_t>> finest_of_;
};

}  // namespace evergrow

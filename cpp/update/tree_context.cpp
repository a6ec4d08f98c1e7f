#include "update/tree_context.hpp"

#include <cstddef>

namespace evergrow {

std::vector<std::int32_t> TreeContext::draw_rows(const std::vector<std::int32_t>& sorted) const {
    std::vector<std::int32_t> copies = repeat_rows(sorted, weights(), tree_key);
    if (plan.row_rate == 1.0 && !plan.bootstrap) return copies;
    Stream stream(purpose_key(tree_key, Purpose::kRows));
    const double expected = plan.row_rate * static_cast<double>(copies.size());
    const auto n_rows = static_cast<std::size_t>(expected + stream.uniform());
    if (copies.empty()) return copies;
    return evergrow::draw_rows(copies, RowSampling{n_rows, plan.bootstrap}, stream);
}

}  // namespace evergrow

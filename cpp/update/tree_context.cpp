#include "update/tree_context.hpp"

#include <cstddef>

#include "samples/row_sampling.hpp"

namespace evergrow {

std::vector<std::int32_t> TreeContext::draw_rows(const std::vector<std::int32_t>& sorted) const {
    if (plan.row_rate == 1.0 && !plan.bootstrap) return sorted;
    Stream stream(purpose_key(tree_key, Purpose::kRows));
    const double expected = plan.row_rate * static_cast<double>(sorted.size());
    const auto n_rows = static_cast<std::size_t>(expected + stream.uniform());
    return evergrow::draw_rows(sorted, RowSampling{n_rows, plan.bootstrap}, stream);
}

}  // namespace evergrow

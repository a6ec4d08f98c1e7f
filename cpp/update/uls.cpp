// Update leaf statistics (ULS): new samples change nothing but what leaves hold.
#include "strategy.hpp"

namespace evergrow {

const Strategy kUpdateLeafStatistics{"uls", false, false, nullptr};

}  // namespace evergrow

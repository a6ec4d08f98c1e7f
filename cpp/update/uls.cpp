// Update leaf statistics (ULS): new samples change nothing but what leaves hold.
#include "update/strategy.hpp"

namespace evergrow {

const Strategy kUpdateLeafStatistics{"uls", false, false, nullptr};

}  // namespace evergrow

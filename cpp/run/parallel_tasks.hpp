// Independent tasks on several threads, which the calling thread can interrupt.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

namespace evergrow {

// Called several times per second on the calling thread with the number of finished tasks. Returns
// false to ask the tasks to stop.
using Poll = std::function<bool(std::size_t n_done)>;

// True if the work was cancelled. Long tasks check it regularly and return early.
using StopFlag = std::atomic<bool>;

// task(index, worker, stop). Tasks of the same worker, 0 to n_threads - 1, never run at the same
// time, so they may share buffers.
using Task = std::function<void(std::size_t index, std::size_t worker, const StopFlag& stop)>;

// Runs the task for every index on `n_threads` threads. Returns false if the poll asked to stop.
// Rethrows the first exception of a task.
bool run_parallel(std::size_t n_tasks, std::size_t n_threads, const Task& task, const Poll& poll);

}  // namespace evergrow

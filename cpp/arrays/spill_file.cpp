#include "arrays/spill_file.hpp"

#include <atomic>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

#if defined(_WIN32)

namespace evergrow {

SpillFile::SpillFile(std::string) {
    throw std::runtime_error(
        "samples cannot be stored in a file on Windows: Storage.limit must be None");
}
SpillFile::~SpillFile() = default;
std::shared_ptr<void> SpillFile::page(std::size_t) { return nullptr; }
bool SpillFile::is_own() const { return true; }

}  // namespace evergrow

#else

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

namespace evergrow {
namespace {

// The file grows by extents of this size, a multiple of every page size; each is mapped once.
constexpr std::size_t kExtent = std::size_t{4} << 20;

// Of this process so far. A child still reads the pages that were in use when it was forked.
std::atomic<unsigned> n_forks{0};

[[noreturn]] void fail(const std::string& what, const std::string& folder) {
    throw std::system_error(
        errno, std::generic_category(),
        what + " for samples in '" + folder + "' (TMPDIR names another folder)");
}

// Allocates disk space now where the system can: if the disk were full at a later write, the
// process would end.
int extend_file(int descriptor, std::size_t from, std::size_t length) {
#if defined(__linux__)
    int error;
    do {
        error = posix_fallocate(descriptor, static_cast<off_t>(from), static_cast<off_t>(length));
    } while (error == EINTR);
    if (error != EOPNOTSUPP && error != EINVAL && error != ENOSYS) return error;
#endif
    return ftruncate(descriptor, static_cast<off_t>(from + length)) == 0 ? 0 : errno;
}

}  // namespace

SpillFile::SpillFile(std::string folder) : folder_(std::move(folder)), process_(getpid()) {
    std::string name = folder_ + "/evergrow-XXXXXX";
    descriptor_ = mkstemp(name.data());
    if (descriptor_ < 0) fail("cannot create a file", folder_);
    unlink(name.c_str());
    fcntl(descriptor_, F_SETFD, FD_CLOEXEC);
    static const int counted = pthread_atfork([] { ++n_forks; }, nullptr, nullptr);
    static_cast<void>(counted);
}

SpillFile::~SpillFile() {
    for (void* extent : extents_) munmap(extent, extent_size_);
    close(descriptor_);
}

bool SpillFile::is_own() const { return getpid() == process_; }

std::shared_ptr<void> SpillFile::page(std::size_t n_bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) {
        // A row of very many features takes more than one of the usual extents.
        extent_size_ = (n_bytes + kExtent - 1) / kExtent * kExtent;
        errno = extend_file(descriptor_, size_, extent_size_);
        if (errno != 0) fail("cannot extend the file", folder_);
        void* memory = mmap(nullptr, extent_size_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_,
                            static_cast<off_t>(size_));
        if (memory == MAP_FAILED) fail("cannot map the file", folder_);
        extents_.push_back(memory);
        size_ += extent_size_;
        // The first page is taken first, so that rows lie in the file in their order.
        for (std::size_t end = extent_size_ / n_bytes * n_bytes; end > 0; end -= n_bytes)
            free_.push_back(static_cast<char*>(memory) + end - n_bytes);
    }
    void* page = free_.back();
    free_.pop_back();
    return {page, [self = shared_from_this(), forks = n_forks.load()](void* released) {
                if (forks != n_forks) return;
                const std::lock_guard<std::mutex> released_lock(self->mutex_);
                self->free_.push_back(released);
            }};
}

}  // namespace evergrow

#endif

internal import Glibc

/// A counting semaphore whose waits end on time whatever becomes of the clock on the wall.
///
/// Dispatch's own waits on Linux until an instant of the adjustable clock (`sem_timedwait`): when
/// that is set back by an hour, a wait of 200 ms takes an hour.
@safe package final class MonotonicSemaphore: @unchecked Sendable {
    // Safety: the count is touched under the mutex alone, and both live as long as the object.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>
    private var count = 0

    /// Makes one that has not been signalled.
    package init() {
        unsafe mutex = .allocate(capacity: 1)
        unsafe condition = .allocate(capacity: 1)
        unsafe pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        unsafe pthread_condattr_init(&attributes)
        unsafe pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        unsafe pthread_cond_init(condition, &attributes)
        unsafe pthread_condattr_destroy(&attributes)
    }

    deinit {
        unsafe pthread_cond_destroy(condition)
        unsafe pthread_mutex_destroy(mutex)
        unsafe condition.deallocate()
        unsafe mutex.deallocate()
    }

    /// Lets one wait go on, this one or the next.
    package func signal() {
        unsafe pthread_mutex_lock(mutex)
        count += 1
        unsafe pthread_cond_signal(condition)
        unsafe pthread_mutex_unlock(mutex)
    }

    /// Waits for a signal, and takes it.
    ///
    /// - Parameter duration: how long at most.
    /// - Returns: whether there was one.
    package func wait(within duration: Duration) -> Bool {
        var end = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &end)
        // Longer than anybody waits, and short enough to be added.
        let nanoseconds = Int(min(duration.nanoseconds, UInt64(1) << 60)) + end.tv_nsec
        end.tv_sec += nanoseconds / 1_000_000_000
        end.tv_nsec = nanoseconds % 1_000_000_000
        unsafe pthread_mutex_lock(mutex)
        defer { unsafe pthread_mutex_unlock(mutex) }
        while count == 0 {
            if unsafe pthread_cond_timedwait(condition, mutex, &end) == ETIMEDOUT, count == 0 {
                return false
            }
        }
        count -= 1
        return true
    }
}

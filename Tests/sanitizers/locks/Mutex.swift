internal import Glibc
@_exported public import Synchronization

/// Stands in for `Synchronization.Mutex` under the thread sanitizer.
///
/// The standard library's own waits in the kernel from code that is built beforehand, so that the
/// sanitizer sees nothing of the order it makes. This one is a lock of the C library, which the
/// sanitizer watches. Everything else of `Synchronization` is passed on as it is: atomics are
/// instructions within the code that uses them.
@safe public struct Mutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    // Both elsewhere in memory: neither may move while a thread holds the lock.
    private let lock: UnsafeMutablePointer<pthread_mutex_t>
    private let value: UnsafeMutablePointer<Value>

    /// A lock around a value.
    public init(_ initialValue: consuming sending Value) {
        unsafe lock = .allocate(capacity: 1)
        unsafe pthread_mutex_init(lock, nil)
        unsafe value = .allocate(capacity: 1)
        unsafe value.initialize(to: initialValue)
    }

    deinit {
        unsafe value.deinitialize(count: 1)
        unsafe value.deallocate()
        unsafe pthread_mutex_destroy(lock)
        unsafe lock.deallocate()
    }

    /// Waits for the lock and gives the value to the closure.
    public borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        unsafe pthread_mutex_lock(lock)
        defer { unsafe pthread_mutex_unlock(lock) }
        return try unsafe body(&value.pointee)
    }

    /// Gives the value to the closure, or returns nil at once if another thread holds the lock.
    public borrowing func withLockIfAvailable<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result? {
        guard unsafe pthread_mutex_trylock(lock) == 0 else { return nil }
        defer { unsafe pthread_mutex_unlock(lock) }
        return try unsafe body(&value.pointee)
    }
}

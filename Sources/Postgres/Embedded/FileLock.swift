internal import Glibc

/// A `flock` on a file, which the kernel drops when the process ends in whatever way.
final class FileLock: Sendable {
    enum Mode {
        case shared
        case exclusive

        var flag: Int32 { self == .shared ? LOCK_SH : LOCK_EX }
    }

    private let file: Int32

    /// Opens the lock file, making it where needed, without locking it.
    ///
    /// A file made by root in somebody's folder is given to that folder's owner, who could not
    /// open it otherwise. Nobody else can: whoever can open it can lock it.
    init(_ path: String) throws(EmbeddedServerError) {
        // Close-on-exec is what keeps the server from inheriting the lock and holding it for ever.
        file = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw FileSystem.failure("cannot open the lock file \(path)") }
        // One that was made by an older program, for everybody; only its owner can.
        _ = fchmod(file, 0o600)
        if geteuid() == 0, let folder = FileSystem.status(FileSystem.parent(of: path)) {
            _ = fchown(file, folder.st_uid, folder.st_gid)
        }
    }

    deinit { close(file) }

    /// Takes the lock if nobody stands in the way; an earlier one of ours is replaced, and lost
    /// when this fails.
    func attempt(_ mode: Mode) -> Bool {
        while flock(file, mode.flag | LOCK_NB) != 0 {
            guard errno == EINTR else { return false }
        }
        return true
    }

    /// Takes the lock, waiting at most so long.
    func acquire(_ mode: Mode, withinSeconds limit: Double) -> Bool {
        let end = Clock.seconds() + limit
        while !attempt(mode) {
            guard Clock.seconds() < end else { return false }
            Clock.sleep(milliseconds: 20)
        }
        return true
    }

    /// Drops the lock and keeps the file open.
    func release() { _ = flock(file, LOCK_UN) }
}

/// The monotonic clock, for waiting.
package enum Clock {
    /// Seconds since some fixed instant.
    package static func seconds() -> Double {
        var now = timespec()
        _ = unsafe clock_gettime(CLOCK_MONOTONIC, &now)
        return Double(now.tv_sec) + Double(now.tv_nsec) / 1e9
    }

    /// Blocks the thread for so long.
    package static func sleep(milliseconds: Int) {
        var rest = timespec(tv_sec: milliseconds / 1000, tv_nsec: milliseconds % 1000 * 1_000_000)
        while true {
            var left = timespec()
            if unsafe nanosleep(&rest, &left) == 0 || errno != EINTR { return }
            rest = left
        }
    }
}

internal import Glibc
package import Ledger
internal import Synchronization

/// What the service says of itself: one JSON object a line on standard error.
///
/// It never holds a path with its values, a query, a body, a token or what Apple signed.
package final class ServiceLog: Sendable {
    /// How important a line is.
    package enum Level: String, Sendable {
        /// All is well.
        case info
        /// Somebody should look.
        case warning
        /// Something does not work.
        case error
    }

    private let descriptor: Int32
    private let now: @Sendable () -> Timestamp
    private let writing = Mutex(())

    /// Makes a log that writes to an open descriptor.
    package init(descriptor: Int32, now: @escaping @Sendable () -> Timestamp) {
        self.descriptor = descriptor
        self.now = now
    }

    /// Writes a line.
    ///
    /// - Parameters:
    ///   - level: how important it is.
    ///   - event: what happened, by a stable name.
    ///   - fields: writes further members.
    package func write(
        _ level: Level,
        _ event: String,
        _ fields: (inout JSONWriter) -> Void = { _ in }
    ) {
        var json = JSONWriter()
        json.beginObject()
        json.member("at", now())
        json.member("level", level.rawValue)
        json.member("event", event)
        fields(&json)
        json.endObject()
        let line = json.bytes + [0x0A]
        writing.withLock { _ in
            var rest = line[...]
            while !rest.isEmpty {
                let count = unsafe rest.withUnsafeBytes {
                    unsafe Glibc.write(descriptor, $0.baseAddress, $0.count)
                }
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return }
                rest = rest.dropFirst(count)
            }
        }
    }
}

internal import CCurl

/// What one request has received so far, and whether it should go on.
///
/// The library calls it in the thread of the request alone.
final class Transfer {
    /// Why the transfer itself gave up, beside what the library says.
    enum Halt {
        case tooLarge, stalled, stopped
    }

    private(set) var halt: Halt?
    private(set) var headers = HTTPHeaders()
    private(set) var body: [UInt8] = []
    private var headerBytes = 0
    private let limitBytes: Int
    private let stallNanoseconds: UInt64
    private let isStopped: () -> Bool
    private var moved: Int64 = -1
    private var movedAt: UInt64 = 0

    /// The headers of an answer, all together.
    private static let headerLimitBytes = 64 * 1024

    init(limitBytes: Int, stallTimeout: Duration, isStopped: @escaping () -> Bool) {
        self.limitBytes = limitBytes
        stallNanoseconds = stallTimeout.nanoseconds
        self.isStopped = isStopped
    }

    /// Takes a piece of the body; false ends the transfer.
    func takeBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count <= limitBytes - body.count else {
            halt = .tooLarge
            return false
        }
        unsafe body.append(contentsOf: bytes)
        return true
    }

    /// Takes a line of the headers; false ends the transfer.
    func takeHeader(_ bytes: UnsafeRawBufferPointer) -> Bool {
        headerBytes += bytes.count
        guard headerBytes <= Self.headerLimitBytes else {
            halt = .tooLarge
            return false
        }
        // A provisional answer (103) came before, and had headers of its own.
        if unsafe bytes.starts(with: "HTTP/".utf8) {
            headers = HTTPHeaders()
            return true
        }
        // Fields after the body are no part of what was asked for.
        guard body.isEmpty, let colon = unsafe bytes.firstIndex(of: UInt8(ascii: ":")) else {
            return true
        }
        let name = unsafe String(decoding: bytes[..<colon], as: UTF8.self)
        let blanks: Set<UInt8> = [0x20, 0x09, 0x0D, 0x0A]
        var value = unsafe Array(bytes[(colon + 1)...].drop { blanks.contains($0) })
        while let last = value.last, blanks.contains(last) { value.removeLast() }
        let text = String(decoding: value, as: UTF8.self)
        if HTTPHeaders.isValidName(name), HTTPHeaders.isValidValue(text) {
            headers.add(name, text)
        }
        return true
    }

    /// Says whether to go on; called when something moved, and about once a second.
    ///
    /// - Parameters:
    ///   - moved: the bytes in both directions so far.
    ///   - isConnected: whether the request has begun: until then another limit counts.
    /// - Returns: whether to go on.
    func goesOn(moved: Int64, isConnected: Bool) -> Bool {
        if isStopped() {
            halt = .stopped
            return false
        }
        let now = MonotonicClock.now
        let sum = moved + Int64(headerBytes)
        if !isConnected || sum != self.moved {
            self.moved = sum
            movedAt = now
        } else if now - movedAt > stallNanoseconds {
            halt = .stalled
            return false
        }
        return true
    }
}

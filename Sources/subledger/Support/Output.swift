internal import Glibc
internal import LedgerService

/// Writes to a descriptor through a buffer.
///
/// A reader that went away (`| head`) is no error: `write` throws `OutputClosed`, and the program
/// ends quietly.
final class Output {
    private let descriptor: Int32
    private let name: String
    private var buffer: [UInt8] = []

    /// How much is gathered before it is written.
    static let bufferSizeBytes = 1 << 16

    /// Makes a writer for a descriptor that others own.
    init(descriptor: Int32, name: String) {
        self.descriptor = descriptor
        self.name = name
    }

    /// A writer for standard output; flush it before the program ends.
    static func standard() -> Output { Output(descriptor: 1, name: "standard output") }

    /// Writes bytes.
    func write(_ bytes: some Sequence<UInt8>) throws {
        buffer.append(contentsOf: bytes)
        if buffer.count >= Self.bufferSizeBytes { try flush() }
    }

    /// Writes a text.
    func write(_ text: String) throws { try write(text.utf8) }

    /// Writes a text and a line feed.
    func line(_ text: String = "") throws {
        try write(text.utf8)
        try write(CollectionOfOne(UInt8(ascii: "\n")))
    }

    /// Writes what is in the buffer.
    func flush() throws {
        var start = 0
        while start < buffer.count {
            let count = unsafe buffer.withUnsafeBytes { bytes in
                unsafe Glibc.write(
                    descriptor,
                    bytes.baseAddress?.advanced(by: start),
                    bytes.count - start
                )
            }
            if count < 0 {
                if errno == EINTR { continue }
                let failure = errno
                buffer.removeAll()
                if failure == EPIPE { throw OutputClosed() }
                throw CommandFailure(
                    exitCode: .usage,
                    message: "cannot write to \(name): \(unsafe String(cString: strerror(failure)))"
                )
            }
            start += count
        }
        buffer.removeAll(keepingCapacity: true)
    }
}

/// Whoever read our output has gone; there is nobody to tell anything to.
struct OutputClosed: Error {}

/// Writes a text to standard error, whatever becomes of it.
///
/// - Parameters:
///   - text: one line or several, of which nothing but its ends is acted upon by a terminal.
///   - isDimmed: whether it is of less weight than others, and shown so where a terminal can.
func printError(_ text: String, isDimmed: Bool = false) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    let plain = lines.map { printable(String($0)) }.joined(separator: "\n")
    let bytes = Array("\(isDimmed ? Terminal.dimError(plain) : plain)\n".utf8)
    _ = unsafe bytes.withUnsafeBytes { unsafe Glibc.write(2, $0.baseAddress, $0.count) }
}

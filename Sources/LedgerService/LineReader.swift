internal import Glibc

/// The lines of a file or of standard input, read in flat memory.
///
/// A line ends with a line feed, a carriage return before it is dropped, and so is a byte order
/// mark at the very beginning. The last line need not end. A line above the limit is told by its
/// number and length alone: its bytes are passed over, never gathered, so that a single line of a
/// gigabyte costs no more memory than any other.
public final class LineReader {
    /// The longest line that is read, 1 MiB; Apple's largest are under 64 KiB.
    public static let lineSizeMaxBytes = 1 << 20

    /// How much is asked of the system at once.
    static let chunkSizeBytes = 1 << 18

    /// How many bytes of lines make a piece of work, beside the line that exceeds it.
    static let pieceSizeMaxBytes = 1 << 20

    /// One line.
    public enum Line: Hashable, Sendable {
        /// A line within the limit, without its end.
        case text(number: Int, bytes: [UInt8])
        /// A line above the limit, of so many bytes.
        case tooLong(number: Int, sizeBytes: Int)
    }

    /// The size of the file, nil where it has none (a pipe).
    public let sizeBytes: Int?

    /// How many bytes were read so far.
    public private(set) var readBytes = 0

    private let name: String
    private let descriptor: Int32
    private let limitBytes: Int
    private var chunk: [UInt8]
    private var start = 0
    private var end = 0
    private var lineNumber = 0
    private var isAtEnd = false

    /// Opens a file, or standard input for `-`.
    ///
    /// - Throws: `InputError` for a file that is not there, cannot be read, is a directory or is
    ///   no text (compressed, UTF-16, binary).
    public convenience init(
        path: String,
        limitBytes: Int = LineReader.lineSizeMaxBytes
    ) throws(InputError) {
        if path == "-" {
            try self.init(descriptor: 0, name: "standard input", limitBytes: limitBytes)
            return
        }
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw InputError(
                code: errno == ENOENT ? .notFound : .unreadable,
                message: "cannot read \(path): \(systemMessage(errno))"
            )
        }
        try self.init(descriptor: descriptor, name: path, limitBytes: limitBytes)
    }

    /// Reads from an open descriptor, which is closed with the reader unless it is 0.
    ///
    /// - Throws: `InputError` for a directory and for what is no text.
    package init(
        descriptor: Int32,
        name: String,
        limitBytes: Int = LineReader.lineSizeMaxBytes
    ) throws(InputError) {
        self.descriptor = descriptor
        self.name = name
        self.limitBytes = limitBytes
        chunk = [UInt8](repeating: 0, count: Self.chunkSizeBytes)
        var status = stat()
        let isKnown = unsafe fstat(descriptor, &status) == 0
        let kind = status.st_mode & S_IFMT
        sizeBytes = isKnown && kind == S_IFREG ? Int(status.st_size) : nil
        guard isKnown else {
            throw InputError(
                code: .unreadable,
                message: "cannot read \(name): \(systemMessage(errno))"
            )
        }
        guard kind != S_IFDIR else {
            throw InputError(
                code: .directory,
                message: "\(name) is a directory; give a file with one notification a line"
            )
        }
        try fill()
        if let form = binaryForm(of: chunk[start..<end]) {
            throw InputError(
                code: .binary,
                message: "\(name) holds no lines of text: it looks like \(form)"
            )
        }
        if chunk[start..<end].starts(with: [0xEF, 0xBB, 0xBF]) { start += 3 }
    }

    deinit {
        if descriptor > 0 { close(descriptor) }
    }

    /// The next line, or nil at the end.
    ///
    /// - Throws: `InputError` when the system fails to read on.
    public func next() throws(InputError) -> Line? {
        var gathered: [UInt8] = []
        var passedOver = 0
        while true {
            if start == end {
                try fill()
                if start == end { break }
            }
            let newline = newlineIndex()
            let stop = newline ?? end
            if passedOver > 0 || gathered.count + (stop - start) > limitBytes + 1 {
                passedOver += gathered.count + (stop - start)
                gathered = []
            } else {
                gathered.append(contentsOf: chunk[start..<stop])
            }
            start = stop
            if newline != nil {
                start += 1
                return line(gathered, passedOver: passedOver)
            }
        }
        return gathered.isEmpty && passedOver == 0 ? nil : line(gathered, passedOver: passedOver)
    }

    /// The next lines, as many as make a piece of work; nil at the end.
    package func lines(max linesMax: Int) throws(InputError) -> [Line]? {
        var lines: [Line] = []
        var sizeBytes = 0
        while lines.count < linesMax, sizeBytes < Self.pieceSizeMaxBytes {
            // What a slow writer has sent is not to wait for what it will send.
            guard lines.isEmpty || isReady, let line = try next() else { break }
            if case .text(_, let bytes) = line { sizeBytes += bytes.count }
            lines.append(line)
        }
        return lines.isEmpty ? nil : lines
    }

    /// Whether there is more to read without waiting for whoever writes it.
    package var isReady: Bool {
        guard sizeBytes == nil, newlineIndex() == nil else { return true }
        var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&request, 1, 0) != 0
    }

    /// Where the next line feed is in what was read, nil when there is none yet.
    private func newlineIndex() -> Int? {
        unsafe chunk.withUnsafeBytes { buffer in
            guard let base = buffer.baseAddress,
                let found = unsafe memchr(base + start, 0x0A, end - start)
            else { return nil }
            return unsafe UnsafeRawPointer(found) - base
        }
    }

    private func line(_ bytes: [UInt8], passedOver: Int) -> Line {
        lineNumber += 1
        guard passedOver == 0 else { return .tooLong(number: lineNumber, sizeBytes: passedOver) }
        var bytes = bytes
        if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
        guard bytes.count <= limitBytes else {
            return .tooLong(number: lineNumber, sizeBytes: bytes.count)
        }
        return .text(number: lineNumber, bytes: bytes)
    }

    private func fill() throws(InputError) {
        guard !isAtEnd else { return }
        start = 0
        end = 0
        while true {
            let count = unsafe chunk.withUnsafeMutableBytes { buffer in
                unsafe read(descriptor, buffer.baseAddress, buffer.count)
            }
            guard count >= 0 else {
                if errno == EINTR { continue }
                throw InputError(
                    code: .unreadable,
                    message: "cannot read on in \(name): \(systemMessage(errno))"
                )
            }
            end = count
            readBytes += count
            isAtEnd = count == 0
            return
        }
    }
}

/// Why a file could not be read as lines; `message` names the file and is safe to log.
public struct InputError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of failure it is.
    public enum Code: Hashable, Sendable {
        /// There is no such file.
        case notFound
        /// The system refuses to open or read it.
        case unreadable
        /// It is a directory.
        case directory
        /// It holds no text.
        case binary
    }

    /// What kind of failure it is.
    public var code: Code
    /// What to tell the user.
    public var message: String

    /// Makes an error.
    public init(code: Code, message: String) {
        self.code = code
        self.message = message
    }

    /// The message.
    public var description: String { message }
}

/// What the system calls an error number.
func systemMessage(_ number: Int32) -> String {
    unsafe strerror(number).map { unsafe String(cString: $0) } ?? "error \(number)"
}

/// Names what the beginning of a file shows to be no text, nil for text.
func binaryForm(of beginning: ArraySlice<UInt8>) -> String? {
    let known: [(mark: [UInt8], form: String)] = [
        ([0x1F, 0x8B], "gzip data; try: gzip -dc FILE | subledger … -"),
        ([0x28, 0xB5, 0x2F, 0xFD], "zstd data; try: zstd -dc FILE | subledger … -"),
        ([0x50, 0x4B, 0x03, 0x04], "a zip archive; unpack it first"),
        ([0xFF, 0xFE], "UTF-16 text; convert it first: iconv -f UTF-16 -t UTF-8"),
        ([0xFE, 0xFF], "UTF-16 text; convert it first: iconv -f UTF-16 -t UTF-8"),
        (Array("SQLite format 3".utf8), "a SQLite database"),
        ([0x7F, 0x45, 0x4C, 0x46], "a program"),
    ]
    for (mark, form) in known where beginning.starts(with: mark) { return form }
    // A zero byte is in no JSON text, and early in nearly every binary format.
    if beginning.prefix(512).contains(0) { return "binary data" }
    return nil
}

/// A small file's bytes.
///
/// - Throws: `InputError` when it is not there, unreadable, a directory or larger than the limit.
package func fileBytes(path: String, sizeMaxBytes: Int) throws(InputError) -> [UInt8] {
    func failure(_ code: InputError.Code, _ reason: String) -> InputError {
        InputError(code: code, message: "cannot read \(path): \(reason)")
    }
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
        throw failure(errno == ENOENT ? .notFound : .unreadable, systemMessage(errno))
    }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while true {
        let count = unsafe chunk.withUnsafeMutableBytes { buffer in
            unsafe read(descriptor, buffer.baseAddress, buffer.count)
        }
        if count < 0, errno == EINTR { continue }
        guard count >= 0 else {
            throw failure(errno == EISDIR ? .directory : .unreadable, systemMessage(errno))
        }
        if count == 0 { return bytes }
        bytes.append(contentsOf: chunk[..<count])
        guard bytes.count <= sizeMaxBytes else {
            throw failure(.unreadable, "it is larger than \(sizeMaxBytes >> 20) MiB")
        }
    }
}

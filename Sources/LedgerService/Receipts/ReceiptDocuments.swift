/// The verifyReceipt responses of a file: one a line, or written over several lines.
///
/// A line that opens an object and does not close it is read on with until it does. One that is a
/// whole response by itself begins anew all the same, so that a torn line costs no more than itself.
public final class ReceiptDocuments {
    /// The longest response that is read.
    public static let sizeMaxBytes = 16 << 20

    /// A response, by the number of the line on which it begins.
    public typealias Document = LineReader.Line

    private let reader: LineReader
    private var held: LineReader.Line?

    /// Reads the responses among some lines.
    public init(_ reader: LineReader) { self.reader = reader }

    /// The next response, nil at the end.
    ///
    /// - Throws: `InputError` when the file cannot be read on.
    public func next() throws(InputError) -> Document? {
        while let line = try nextLine() {
            guard case .text(let number, let bytes) = line else { return line }
            if Self.isBlank(bytes) { continue }
            var braces = Braces()
            braces.take(bytes)
            return braces.isOpen ? try gathered(from: number, bytes, braces) : line
        }
        return nil
    }

    private func nextLine() throws(InputError) -> LineReader.Line? {
        guard let line = held else { return try reader.next() }
        held = nil
        return line
    }

    private func gathered(
        from number: Int,
        _ start: [UInt8],
        _ braces: Braces
    ) throws(InputError) -> Document {
        var (bytes, braces, size) = (start, braces, start.count)
        while braces.isOpen, let line = try reader.next() {
            guard case .text(_, let more) = line, !Self.isWhole(more) else {
                held = line
                break
            }
            size += more.count + 1
            braces.take(more)
            if size <= Self.sizeMaxBytes { bytes += [0x0A] + more } else { bytes = [] }
        }
        return size <= Self.sizeMaxBytes
            ? .text(number: number, bytes: bytes) : .tooLong(number: number, sizeBytes: size)
    }

    private static func isBlank(_ bytes: [UInt8]) -> Bool { bytes.allSatisfy { $0 <= 0x20 } }

    /// Whether a line is a response by itself, which stands within no other.
    private static func isWhole(_ bytes: [UInt8]) -> Bool {
        guard bytes.first == UInt8(ascii: "{") else { return false }
        var braces = Braces()
        braces.take(bytes)
        guard !braces.isOpen, bytes.last == UInt8(ascii: "}") else { return false }
        return ["\"status\"", "\"receipt\"", "\"latest_receipt_info\""].contains { name in
            bytes.firstRange(of: Array(name.utf8)) != nil
        }
    }

    /// How many braces are open, those within texts not counted.
    private struct Braces {
        private var depth = 0
        private var isInText = false
        private var isEscaped = false

        var isOpen: Bool { depth > 0 }

        mutating func take(_ bytes: [UInt8]) {
            // A text ends with its line at the latest; JSON has no line feed in one.
            (isInText, isEscaped) = (false, false)
            for byte in bytes {
                if isInText {
                    if isEscaped {
                        isEscaped = false
                    } else if byte == UInt8(ascii: "\\") {
                        isEscaped = true
                    } else if byte == UInt8(ascii: "\"") {
                        isInText = false
                    }
                    continue
                }
                switch byte {
                case UInt8(ascii: "\""): isInText = true
                case UInt8(ascii: "{"): depth += 1
                case UInt8(ascii: "}"): depth -= 1
                default: break
                }
            }
        }
    }
}

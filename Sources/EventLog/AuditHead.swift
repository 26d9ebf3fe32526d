public import Ledger

/// The end of the log: what to keep elsewhere, so that nobody can cut or change the log unseen.
public struct AuditHead: Hashable, Sendable {
    /// The last position; 0 where the log is empty.
    public var position: Int64
    /// The hash over everything up to there.
    public var root: [UInt8]
    /// When the last event was committed.
    public var recordedAt: Timestamp

    /// Makes a head, for instance one that was kept.
    public init(position: Int64, root: [UInt8], recordedAt: Timestamp) {
        self.position = position
        self.root = root
        self.recordedAt = recordedAt
    }

    /// The hash in hexadecimal.
    public var rootText: String { hexadecimal(root) }
}

/// Bytes as lower-case hexadecimal digits.
func hexadecimal(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    for byte in bytes {
        text.append(digits[Int(byte >> 4)])
        text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
}

internal import Crypto
internal import Ledger
internal import Postgres

/// The hashes that make every column of the log evident.
///
/// A leaf is one event, a root one append transaction, a link chains the roots. The encoding is
/// stated in `schema/README.md` and never changes; a new one would get a new version byte.
enum Chain {
    /// The link before the first batch.
    static let genesis = [UInt8](repeating: 0, count: SHA256.lengthBytes)

    /// The version of the encoding, the first byte of every leaf and link.
    private static let version: UInt8 = 1

    /// The version of a sealed digest that a body has gone into.
    private static let versionWithBody: UInt8 = 2

    /// The hash of one event's immutable columns.
    static func leaf(_ event: StoredEvent, app: AppKey) -> [UInt8] {
        var bytes: [UInt8] = [0x00, version]
        bytes.reserveCapacity(512)
        append(event.position, to: &bytes)
        append(Int64(event.key.appID), to: &bytes)
        append(app.bundleID, to: &bytes)
        append(app.environment.description, to: &bytes)
        append(event.key.stream, to: &bytes)
        append(event.eventKey, to: &bytes)
        append(event.kind.description, to: &bytes)
        append(event.notificationType, to: &bytes)
        append(event.subtype, to: &bytes)
        append(event.provenance.text, to: &bytes)
        append(event.signedAt?.milliseconds ?? .min, to: &bytes)
        append(event.recordedAt.milliseconds, to: &bytes)
        append(event.correlation, to: &bytes)
        bytes.append(contentsOf: event.contentDigest)
        bytes.append(contentsOf: event.sealedDigest)
        return SHA256.digest(bytes)
    }

    /// The Merkle tree hash of RFC 6962 over leaf hashes; 32 zero bytes for none.
    static func root(_ leaves: [[UInt8]]) -> [UInt8] {
        guard !leaves.isEmpty else { return genesis }
        return root(leaves[...])
    }

    private static func root(_ leaves: ArraySlice<[UInt8]>) -> [UInt8] {
        guard leaves.count > 1 else { return leaves.first ?? genesis }
        // The largest power of two below the count.
        let left = 1 << (Int.bitWidth - 1 - (leaves.count - 1).leadingZeroBitCount)
        let middle = leaves.startIndex + left
        return SHA256.digest([0x01] + root(leaves[..<middle]) + root(leaves[middle...]))
    }

    /// The link after a batch.
    static func link(_ batch: Batch) -> [UInt8] {
        var bytes: [UInt8] = [0x02, version]
        append(batch.firstPosition, to: &bytes)
        append(batch.lastPosition, to: &bytes)
        append(batch.recordedAt.milliseconds, to: &bytes)
        bytes.append(contentsOf: batch.root)
        bytes.append(contentsOf: batch.previous)
        return SHA256.digest(bytes)
    }

    /// The digest that stands for an event's personal fields, and stays when they are erased.
    static func sealed(
        salt: [UInt8],
        operator: String?,
        ticket: String?,
        received: [UInt8],
        posted: PostedBody?
    ) -> [UInt8] {
        var bytes: [UInt8] = [0x03, posted == nil ? version : versionWithBody]
        bytes.reserveCapacity(received.count + 256)
        bytes.append(contentsOf: salt)
        append(`operator`, to: &bytes)
        append(ticket, to: &bytes)
        if let posted {
            append(Int64(posted.parts.count), to: &bytes)
            for part in posted.parts {
                append(Int64(part.count), to: &bytes)
                bytes.append(contentsOf: part)
            }
        }
        bytes.append(contentsOf: received)
        return SHA256.digest(bytes)
    }

    private static func append(_ value: Int64, to bytes: inout [UInt8]) {
        for shift in stride(from: 56, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: value >> Int64(shift)))
        }
    }

    /// A text is its length and its UTF-8; an absent one is the length -1.
    private static func append(_ text: String?, to bytes: inout [UInt8]) {
        guard let text else { return append(-1, to: &bytes) }
        append(Int64(text.utf8.count), to: &bytes)
        bytes.append(contentsOf: text.utf8)
    }
}

/// One row of `ledger.batch`.
struct Batch: Hashable {
    var firstPosition: Int64
    var lastPosition: Int64
    var recordedAt: Timestamp
    var root: [UInt8]
    /// The link of the batch before.
    var previous: [UInt8]
}

extension Batch {
    /// The columns that `init(_:_:)` reads.
    static let columns = "first_position, last_position, recorded_at, root, previous"

    /// Reads a row of these columns.
    init(_ rows: Rows, _ row: Int) {
        firstPosition = rows.int(row, 0) ?? 0
        lastPosition = rows.int(row, 1) ?? 0
        recordedAt = Timestamp(milliseconds: rows.instant(row, 2) ?? 0)
        root = rows.bytes(row, 3) ?? []
        previous = rows.bytes(row, 4) ?? []
    }
}

internal import AppStore
internal import Crypto
internal import Dispatch
package import Ledger
package import Postgres
internal import Synchronization

/// A delivery that was turned away.
///
/// What it says of its content nobody vouches for.
package struct RefusedDelivery: Hashable, Sendable {
    /// When it came.
    package var at: Timestamp
    /// Why it was refused, by a stable name.
    package var reason: String
    /// How long the body was, in bytes.
    package var sizeBytes: Int
    /// SHA-256 of the body; nil where it was not read to its end.
    package var digest: [UInt8]?
    /// Who sent it.
    package var peer: String?
    /// The type that it claims.
    package var notificationType: String?
    /// The UUID that it claims.
    package var notificationUUID: String?
    /// The app that it claims to be for.
    package var bundleID: String?
    /// The environment that it claims.
    package var environment: String?

    /// Makes a refusal.
    package init(
        at: Timestamp,
        reason: String,
        sizeBytes: Int,
        digest: [UInt8]? = nil,
        peer: String? = nil
    ) {
        self.at = at
        self.reason = reason
        self.sizeBytes = sizeBytes
        self.digest = digest
        self.peer = peer
    }

    /// The longest text of a claim that is kept.
    static let claimLengthMax = 200

    /// Notes what an unverified notification claims of itself.
    mutating func noteClaims(ofPayload payload: JSONDocument) {
        func text(_ value: JSONValue?) -> String? {
            value?.text.map { String($0.prefix(Self.claimLengthMax)) }
        }
        notificationType = text(payload["notificationType"])
        notificationUUID = text(payload["notificationUUID"])
        let content = payload["data"] ?? payload["summary"] ?? payload["appData"]
        bundleID = text(content?["bundleId"])
        environment = text(content?["environment"])
    }
}

extension RefusedDelivery {
    /// The latest refusals, the newest first.
    ///
    /// - Throws: `PostgresError`.
    package static func latest(
        _ limit: Int64,
        _ connection: Connection
    ) throws(PostgresError) -> [RefusedDelivery] {
        let rows = try connection.query(
            """
            select refused_at, reason, size_bytes, digest, peer, notification_type,
                notification_uuid, bundle_id, environment
            from ledger.refusal order by refused_at desc, refusal_id desc limit $1
            """,
            [.int(limit)]
        )
        return (0..<rows.count).map { row in
            var refusal = RefusedDelivery(
                at: rows.timestamp(row, 0) ?? .earliest,
                reason: rows.text(row, 1) ?? "",
                sizeBytes: Int(rows.int(row, 2) ?? 0),
                digest: rows.bytes(row, 3),
                peer: rows.text(row, 4)
            )
            refusal.notificationType = rows.text(row, 5)
            refusal.notificationUUID = rows.text(row, 6)
            refusal.bundleID = rows.text(row, 7)
            refusal.environment = rows.text(row, 8)
            return refusal
        }
    }

    /// Writes it as `subledger refusals --json` shows it.
    package func write(to json: inout JSONWriter) {
        json.beginObject()
        json.member("refused_at", at)
        json.member("reason", reason)
        json.member("size_bytes", sizeBytes)
        json.member("sha256", digest.map { hexadecimal($0) })
        json.member("peer", peer)
        json.member("unverified_notification_type", notificationType)
        json.member("unverified_notification_uuid", notificationUUID)
        json.member("unverified_bundle_id", bundleID)
        json.member("unverified_environment", environment)
        json.endObject()
    }
}

/// Keeps the latest refusals, on a thread of its own: turning a delivery away waits for nothing.
package final class RefusalBook: Sendable {
    /// How many are kept.
    package static let keptMax = 100_000
    /// How many may wait to be written.
    static let waitingMax = 2000

    private struct State {
        var waiting: [RefusedDelivery] = []
        var isWriting = false
    }

    private let connect: @Sendable () throws -> Connection
    private let keptMax: Int
    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "subledger.refusals")
    /// How many could not be written down; they are counted among the refused all the same.
    package let lost = Counter()

    /// Makes a book.
    ///
    /// - Parameters:
    ///   - keptMax: how many rows are kept.
    ///   - connect: opens a session that may insert and remove refusals.
    package init(
        keptMax: Int = RefusalBook.keptMax,
        connect: @escaping @Sendable () throws -> Connection
    ) {
        self.keptMax = keptMax
        self.connect = connect
    }

    /// Has a refusal written down.
    package func add(_ refusal: RefusedDelivery) {
        let isNeeded = state.withLock { state in
            guard state.waiting.count < Self.waitingMax else {
                lost.add(1)
                return false
            }
            state.waiting.append(refusal)
            defer { state.isWriting = true }
            return !state.isWriting
        }
        if isNeeded { queue.async { [self] in write() } }
    }

    /// Waits until what was added is written or lost.
    package func drain() { queue.sync {} }

    private func write() {
        while true {
            let refusals = state.withLock { state in
                defer { state.waiting = [] }
                state.isWriting = !state.waiting.isEmpty
                return state.waiting
            }
            guard !refusals.isEmpty else { return }
            do {
                try insert(refusals, connect())
            } catch {
                // The database is away, or refuses: the counters still tell of them.
                lost.add(refusals.count)
            }
        }
    }

    private func insert(_ refusals: [RefusedDelivery], _ connection: Connection) throws {
        for refusal in refusals {
            try connection.query(
                """
                insert into ledger.refusal (refused_at, reason, size_bytes, digest, peer,
                    notification_type, notification_uuid, bundle_id, environment)
                values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
                """,
                [
                    .instant(milliseconds: refusal.at.milliseconds), .text(refusal.reason),
                    .int(Int64(refusal.sizeBytes)), refusal.digest.map { .bytes($0) } ?? .null,
                    .text(refusal.peer), .text(Self.storable(refusal.notificationType)),
                    .text(Self.storable(refusal.notificationUUID)),
                    .text(Self.storable(refusal.bundleID)),
                    .text(Self.storable(refusal.environment)),
                ]
            )
        }
        try connection.query(
            """
            delete from ledger.refusal where (refused_at, refusal_id) in (
                select refused_at, refusal_id from ledger.refusal
                order by refused_at desc, refusal_id desc offset $1)
            """,
            [.int(Int64(keptMax))]
        )
    }

    /// A stranger's text as a text of the database, which holds no zero bytes.
    private static func storable(_ text: String?) -> String? {
        text.map {
            $0.split(separator: "\0", omittingEmptySubsequences: false).joined(
                separator: "\u{FFFD}"
            )
        }
    }
}

internal import Crypto
internal import Ledger
internal import Postgres

/// The rows that events refer to: apps, anchors and JWS headers.
///
/// They are written in statements of their own, committed before the append transaction begins,
/// and remembered. Numbers are `max + 1`: where two writers pick the same one, the second inserts
/// nothing and picks again.
struct ReferenceRows {
    /// How often a number is picked anew before something else must be wrong.
    private static let attempts = 100

    /// How many headers are remembered; Apple changes its leaf a few times a year.
    private static let headersMax = 4096

    private struct Header {
        var id: Int32
        var text: [UInt8]
    }

    private var apps: [AppKey: Int32] = [:]
    private var anchors: Set<[UInt8]> = []
    private var headers: [[UInt8]: Header] = [:]

    /// Makes sure of the rows that an event refers to, apart from its headers.
    mutating func appID(_ key: AppKey, _ connection: Connection) throws -> Int32 {
        if let known = apps[key] { return known }
        let environment = key.environment.description
        for _ in 0..<Self.attempts {
            let rows = try connection.query(
                "select app_id from ledger.app where bundle_id = $1 and environment = $2",
                [.text(key.bundleID), .text(environment)]
            )
            if rows.count == 1, let id = rows.int(0, 0) {
                apps[key] = Int32(id)
                return Int32(id)
            }
            try connection.query(
                """
                insert into ledger.app (app_id, bundle_id, environment)
                select coalesce(max(app_id), 0) + 1, $1::text, $2::text from ledger.app
                on conflict do nothing
                """,
                [.text(key.bundleID), .text(environment)]
            )
        }
        throw EventLogError(.temporary, "no number could be given to the app \(key.bundleID)")
    }

    /// The layer whose header this text is, or nil where none of them vouches for it.
    func layer(of text: ArraySlice<UInt8>, among layers: [EvidenceLayer]) -> EvidenceLayer? {
        for layer in layers {
            if let known = headers[layer.headerDigest], ByteScan.areEqual(known.text[...], text) {
                return layer
            }
        }
        let digest = SHA256.digest(text)
        return layers.first { $0.headerDigest == digest }
    }

    /// The number of a header, made where it is new.
    mutating func headerID(
        _ text: ArraySlice<UInt8>,
        _ layer: EvidenceLayer,
        _ connection: Connection
    ) throws -> Int32 {
        if let known = headers[layer.headerDigest] { return known.id }
        try addAnchor(layer, connection)
        for _ in 0..<Self.attempts {
            let rows = try connection.query(
                "select header_id from ledger.jws_header where digest = $1",
                [.bytes(layer.headerDigest)]
            )
            if rows.count == 1, let id = rows.int(0, 0) {
                if headers.count >= Self.headersMax { headers.removeAll() }
                headers[layer.headerDigest] = Header(id: Int32(id), text: Array(text))
                return Int32(id)
            }
            try connection.query(
                """
                insert into ledger.jws_header (header_id, digest, header, anchor_fingerprint)
                select coalesce(max(header_id), 0) + 1, $1, $2::text, $3 from ledger.jws_header
                on conflict do nothing
                """,
                [
                    .bytes(layer.headerDigest), .text(String(decoding: text, as: UTF8.self)),
                    .bytes(layer.anchorFingerprint),
                ]
            )
        }
        throw EventLogError(.temporary, "no number could be given to a JWS header")
    }

    private mutating func addAnchor(_ layer: EvidenceLayer, _ connection: Connection) throws {
        guard !anchors.contains(layer.anchorFingerprint) else { return }
        try connection.query(
            "insert into ledger.anchor (fingerprint, certificate) values ($1, $2)"
                + " on conflict do nothing",
            [.bytes(layer.anchorFingerprint), .bytes(layer.anchorDER)]
        )
        anchors.insert(layer.anchorFingerprint)
    }
}

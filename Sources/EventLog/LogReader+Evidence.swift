internal import Crypto
internal import Ledger
internal import Postgres

extension LogReader {
    /// What was received for the event at a position, byte for byte, or nil where there is none.
    ///
    /// - Throws: `.unreadable` where the stored parts do not fit together.
    public func evidence(at position: Int64) throws(EventLogError) -> StoredEvidence? {
        guard let event = try event(at: position) else { return nil }
        return try evidence(of: event)
    }

    /// What was received for an event.
    public func evidence(of event: StoredEvent) throws(EventLogError) -> StoredEvidence? {
        try logged("read the evidence of event \(event.position)") {
            let rows = try connection.query(
                """
                select \(StoredParts.columns) from ledger.evidence
                where stream = $1 and app_id = $2 and position = $3
                """,
                [.text(event.key.stream), .int(Int64(event.key.appID)), .int(event.position)]
            )
            guard rows.count == 1 else { return nil }
            var cache = HeaderCache(connection)
            return try evidence(of: event, rows, 0, column: 0, &cache)
        }
    }

    /// Puts evidence together from a row whose evidence columns begin at `column`.
    func evidence(
        of event: StoredEvent,
        _ rows: Rows,
        _ row: Int,
        column: Int,
        _ headers: inout HeaderCache
    ) throws -> StoredEvidence {
        try parts(of: event, rows, row, column: column, &headers).evidence()
    }

    /// Takes the parts of evidence from such a row; putting them together is left to whoever has
    /// a thread for it.
    func parts(
        of event: StoredEvent,
        _ rows: Rows,
        _ row: Int,
        column: Int,
        _ headers: inout HeaderCache
    ) throws -> StoredParts {
        guard
            let number = rows.int(row, column),
            let codec = EvidenceCodec(rawValue: Int16(truncatingIfNeeded: number))
        else { throw StoredParts.unreadable(event, "has a codec that this program does not know") }
        let known = try (rows.intArray(row, column + 2) ?? []).map { try headers.header($0) }
        let texts = known.compactMap(\.self)
        guard texts.count == known.count else {
            throw StoredParts.unreadable(event, "refers to a missing header")
        }
        return StoredParts(
            event: event,
            parts: EvidenceParts(
                codec: codec,
                headers: texts.map { $0.text[...] },
                cuts: (rows.intArray(row, column + 3) ?? []).map {
                    Int32(truncatingIfNeeded: $0)
                },
                payloads: rows.bytesArray(row, column + 4) ?? [],
                signatures: rows.bytes(row, column + 5) ?? []
            ),
            layers: texts.map(\.layer),
            salt: rows.bytes(row, column + 1) ?? [],
            posted: try rows.bytesArray(row, column + 6).map { parts in
                guard let posted = PostedBody(parts: parts) else {
                    throw StoredParts.unreadable(event, "has a body that does not fit together")
                }
                return posted
            }
        )
    }
}

/// Evidence as it is stored, not put together yet.
struct StoredParts: Sendable {
    var event: StoredEvent
    var parts: EvidenceParts
    var layers: [EvidenceLayer]
    var salt: [UInt8]
    var posted: PostedBody?

    /// The columns that it is read from, in their order.
    static let columns = """
        evidence.codec, evidence.salt, evidence.headers, evidence.cuts, evidence.payloads,
        evidence.signatures, evidence.posted
        """

    /// Puts it together.
    func evidence() throws(EventLogError) -> StoredEvidence {
        guard let received = parts.recomposed() else {
            throw Self.unreadable(event, "does not fit together")
        }
        return StoredEvidence(
            event: event,
            received: received,
            form: parts.codec.form,
            codec: parts.codec,
            layers: layers,
            salt: salt,
            posted: posted
        )
    }

    static func unreadable(_ event: StoredEvent, _ what: String) -> EventLogError {
        EventLogError(
            .unreadable,
            "the evidence of event \(event.position) of \(event.key) \(what)",
            position: event.position
        )
    }
}

/// JWS headers with their anchors, read once each.
struct HeaderCache {
    struct Header {
        var text: [UInt8]
        var layer: EvidenceLayer
    }

    private let connection: Connection
    private var known: [Int64: Header] = [:]

    init(_ connection: Connection) { self.connection = connection }

    /// The header of a number, or nil.
    mutating func header(_ id: Int64) throws -> Header? {
        if let header = known[id] { return header }
        let rows = try connection.query(
            """
            select header, digest, fingerprint, certificate
            from ledger.jws_header
            join ledger.anchor on anchor.fingerprint = jws_header.anchor_fingerprint
            where header_id = $1
            """,
            [.int(id)]
        )
        guard
            rows.count == 1, let text = rows.bytes(0, 0), let digest = rows.bytes(0, 1),
            let fingerprint = rows.bytes(0, 2), let certificate = rows.bytes(0, 3)
        else { return nil }
        let header = Header(
            text: text,
            layer: EvidenceLayer(
                headerDigest: digest,
                anchorFingerprint: fingerprint,
                anchorDER: certificate
            )
        )
        known[id] = header
        return header
    }
}

internal import Crypto
internal import Ledger
internal import Postgres

/// An event with all that can be made before the head is locked.
struct PreparedEvent {
    var source: NewEvent
    var key: SubscriptionKey
    var headers: [Int32]
    var parts: EvidenceParts
    var salt: [UInt8]
    var sealedDigest: [UInt8]
    var fact: FactWriter

    /// What identifies the event: the same fact delivered again has the same identity.
    struct Identity: Hashable {
        var key: SubscriptionKey
        var eventKey: String
    }

    var identity: Identity { Identity(key: key, eventKey: source.eventKey) }

    init(
        _ event: NewEvent,
        references: inout ReferenceRows,
        decoder: Int16,
        _ connection: Connection
    ) throws {
        source = event
        let appID = try references.appID(event.app, connection)
        key = SubscriptionKey(appID: appID, stream: event.stream)
        // Apple's words with U+0000 cannot be a column; the evidence has them.
        source.notificationType = Self.representable(
            event.notificationType,
            "notification_type",
            &source
        )
        source.subtype = Self.representable(event.subtype, "subtype", &source)
        let known = references
        let isKnown: (ArraySlice<UInt8>) -> Bool = { header in
            known.layer(of: header, among: event.layers) != nil
        }
        let preparation: EvidencePreparation
        if let made = event.preparation, made.holds(for: event, isKnown: isKnown) {
            preparation = made
        } else {
            preparation = EvidencePreparation(event, isKnown: isKnown)
        }
        source.preparation = nil
        parts = preparation.parts
        salt = preparation.salt
        sealedDigest = preparation.sealedDigest
        headers = []
        for header in parts.headers {
            guard let layer = references.layer(of: header, among: event.layers) else { continue }
            headers.append(try references.headerID(header, layer, connection))
        }
        fact = FactWriter(source, appID: appID, decoder: decoder)
    }

    /// Why the event cannot be a row whatever the server thinks, or nil.
    static func objection(to event: NewEvent) -> String? {
        let needed = [event.stream, event.eventKey, event.app.bundleID]
        let optional = [event.correlation, event.operator, event.ticket].compactMap(\.self)
        if (needed + optional).contains(where: { $0.utf8.contains(0) }) {
            return "key_not_representable"
        }
        if event.contentDigest.count != SHA256.lengthBytes { return "content_digest_missing" }
        if let signedAt = event.signedAt, !signedAt.isStorable { return "signed_at_out_of_range" }
        return nil
    }

    /// The event as its row will be.
    func stored(position: Int64, recordedAt: Timestamp) -> StoredEvent {
        StoredEvent(
            position: position,
            key: key,
            eventKey: source.eventKey,
            kind: source.kind,
            notificationType: source.notificationType,
            subtype: source.subtype,
            provenance: source.provenance,
            signedAt: source.signedAt,
            recordedAt: recordedAt,
            correlation: source.correlation,
            contentDigest: source.contentDigest,
            sealedDigest: sealedDigest,
            operator: source.operator,
            ticket: source.ticket
        )
    }

    func writeEvidence(position: Int64, to rows: inout RowBuffer) {
        rows.beginRow(columns: 10)
        rows.int64(position)
        rows.int32(key.appID)
        rows.int16(parts.codec.rawValue)
        rows.text(key.stream)
        rows.bytea(salt)
        rows.int32Array(headers)
        rows.int32Array(parts.cuts)
        rows.byteaArray(parts.payloads)
        rows.bytea(parts.signatures)
        if let posted = source.posted { rows.byteaArray(posted.parts) } else { rows.null() }
    }

    func writeFact(position: Int64, to rows: inout RowBuffer) {
        rows.beginRow(columns: FactColumns.writtenCount)
        rows.int64(position)
        rows.fields(of: fact.fields)
    }

    private static func representable(
        _ text: String?,
        _ column: String,
        _ event: inout NewEvent
    ) -> String? {
        guard let text, text.utf8.contains(0) else { return text }
        event.decodeAnomalies.append(notRepresentable(column))
        return nil
    }

    /// How a text with U+0000 is named among the anomalies.
    static func notRepresentable(_ column: String) -> String { "\(column):not_representable" }
}

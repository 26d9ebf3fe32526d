public import Ledger

/// Decodes payloads into the facts that the fold needs.
///
/// It is total: any JSON gives a result. Raise `version` with every change of what a payload
/// decodes to, so that stored facts of an older decoder are read from their evidence again.
public enum FactDecoder {
    /// The version of this decoder.
    public static let version: Int16 = 2

    /// What a payload decodes to.
    public struct Decoded: Hashable, Sendable {
        /// What the fold needs; nil for what is never folded.
        public var fact: Fact?
        /// The chain of transactions it is about.
        public var originalTransactionID: String?
        /// Apple's reason for a notification.
        public var notificationType: String?
        /// What more Apple said of it.
        public var subtype: String?
        /// What deliveries of one notification have in common.
        public var notificationUUID: String?
        /// Whether some value is none that this program knows.
        public var isUnrecognised = false
        /// What could not be decoded, as `field:problem`.
        public var anomalies: [String] = []
        /// Why it cannot be given a place in the log.
        public var quarantineReason: String?
    }

    /// A decoded text within a notification, as the evidence has it.
    public struct NestedPayload: Sendable {
        /// The name of the member that holds it, such as `signedTransactionInfo`.
        public var field: String
        /// The decoded payload.
        public var payload: JSONDocument

        /// Makes a nested payload.
        public init(field: String, payload: JSONDocument) {
            self.field = field
            self.payload = payload
        }
    }

    /// Decodes a payload and the payloads of the signed texts within it.
    public static func decode(
        kind: DocumentKind,
        payload: JSONDocument,
        nested: [NestedPayload]
    ) -> Decoded {
        decode(
            kind: kind,
            payload: payload,
            parts: nested.map {
                Part(
                    field: $0.field,
                    payload: $0.payload,
                    digest: CanonicalContent($0.payload).digest
                )
            }
        )
    }

    static func decode(
        kind: DocumentKind,
        payload: JSONDocument,
        contentDigest: [UInt8],
        nested: [NestedDocument]
    ) -> Decoded {
        decode(
            kind: kind,
            payload: payload,
            parts: kind == .notification
                ? nested.map {
                    Part(field: $0.field, payload: $0.payload, digest: $0.contentDigest)
                }
                : [Part(field: "", payload: payload, digest: contentDigest)]
        )
    }

    /// One payload with the digest of its content.
    private struct Part {
        var field: String
        var payload: JSONDocument
        var digest: [UInt8]
    }

    private static func decode(
        kind: DocumentKind,
        payload: JSONDocument,
        parts: [Part]
    ) -> Decoded {
        var transaction = parts.first { $0.field == "signedTransactionInfo" }
        var renewal = parts.first { $0.field == "signedRenewalInfo" }
        switch kind {
        case .notification: break
        case .transaction:
            transaction = parts.first ?? part(payload)
            renewal = nil
        case .renewalInfo:
            renewal = parts.first ?? part(payload)
            transaction = nil
        case .appTransaction:
            transaction = nil
            renewal = nil
        }
        var decoded = Decoded()
        var reader = FieldReader(payload.root)
        var fact = Fact(kind: kind.eventKind, provenance: .jws, factAt: .earliest)
        fact.signedAt = reader.instant("signedDate", "signed_at")
        if let transaction {
            read(transaction, into: &fact, decoded: &decoded)
        }
        if let renewal {
            read(renewal: renewal, into: &fact, decoded: &decoded)
        }
        if kind == .notification {
            read(envelope: payload, &reader, into: &fact, decoded: &decoded)
        }
        decoded.anomalies = reader.anomalies + decoded.anomalies
        decoded.isUnrecognised = decoded.isUnrecognised || reader.hasUnknownValue
        let factAt = fact.transaction?.signedDate ?? fact.renewal?.signedDate ?? fact.signedAt
        let isFolded =
            (fact.transaction != nil || fact.renewal != nil) && fact.notificationType != .test
        if isFolded, decoded.originalTransactionID != nil, let factAt {
            fact.factAt = factAt
            decoded.fact = fact
        }
        decoded.quarantineReason = quarantineReason(kind, fact, decoded)
        return decoded
    }

    private static func part(_ payload: JSONDocument) -> Part {
        Part(field: "", payload: payload, digest: CanonicalContent(payload).digest)
    }

    private static func read(_ part: Part, into fact: inout Fact, decoded: inout Decoded) {
        var reader = FieldReader(part.payload.root, prefix: "")
        fact.transaction = TransactionFact(&reader, digest: part.digest)
        if let id = reader.text("originalTransactionId", "original_transaction_id") {
            decoded.originalTransactionID = id
        }
        decoded.anomalies += reader.anomalies
        decoded.isUnrecognised = decoded.isUnrecognised || reader.hasUnknownValue
    }

    private static func read(
        renewal part: Part,
        into fact: inout Fact,
        decoded: inout Decoded
    ) {
        var reader = FieldReader(part.payload.root, prefix: "renewal.")
        fact.renewal = RenewalFact(&reader, digest: part.digest)
        let id = reader.text("originalTransactionId", "original_transaction_id")
        decoded.originalTransactionID = decoded.originalTransactionID ?? id
        decoded.anomalies += reader.anomalies
        decoded.isUnrecognised = decoded.isUnrecognised || reader.hasUnknownValue
    }

    private static func read(
        envelope payload: JSONDocument,
        _ reader: inout FieldReader,
        into fact: inout Fact,
        decoded: inout Decoded
    ) {
        decoded.notificationType = reader.text("notificationType", "notification_type")
        decoded.subtype = reader.text("subtype", "subtype")
        decoded.notificationUUID = reader.text("notificationUUID", "notification_uuid")
        fact.notificationType = decoded.notificationType.map { NotificationType($0) }
        fact.subtype = decoded.subtype.map { Subtype($0) }
        if fact.notificationType?.unknownText != nil || fact.subtype?.unknownText != nil {
            decoded.isUnrecognised = true
        }
        let form = EnvelopeForm.allCases.first { payload[$0.rawValue]?.kind == .object }
        if form == nil { decoded.isUnrecognised = true }
        guard var data = reader.object("data", "data") else { return }
        fact.status = data.code("status", "status", known: 1...5)
        fact.consumptionRequestReason = data.word(
            "consumptionRequestReason",
            "consumption_request_reason"
        )
        reader.take(data)
    }

    /// Why a document that is trusted cannot be given a place in the log.
    private static func quarantineReason(
        _ kind: DocumentKind,
        _ fact: Fact,
        _ decoded: Decoded
    ) -> String? {
        switch kind {
        case .appTransaction: return nil
        case .transaction, .renewalInfo:
            if decoded.originalTransactionID == nil { return "original_transaction_id_missing" }
            return decoded.fact == nil ? "transaction_id_missing" : nil
        case .notification:
            guard let uuid = decoded.notificationUUID, !uuid.isEmpty else {
                return "notification_uuid_missing"
            }
            guard let type = fact.notificationType else { return "notification_type_missing" }
            guard needsTransaction(type, fact.subtype) else { return nil }
            return decoded.originalTransactionID == nil ? "transaction_missing" : nil
        }
    }

    private static func needsTransaction(_ type: NotificationType, _ subtype: Subtype?) -> Bool {
        switch type {
        case .subscribed, .didRenew, .didChangeRenewalPref, .didChangeRenewalStatus,
            .offerRedeemed, .didFailToRenew, .gracePeriodExpired, .expired, .priceIncrease,
            .refund, .refundDeclined, .refundReversed, .revoke, .renewalExtended, .oneTimeCharge,
            .consumptionRequest:
            true
        case .renewalExtension: subtype == .failure
        default: false
        }
    }
}

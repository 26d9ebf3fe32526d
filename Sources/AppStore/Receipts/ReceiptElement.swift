public import Ledger

/// One object of a verifyReceipt response that tells of a subscription: a transaction, or what is
/// to become of it.
public struct ReceiptElement: Hashable, Sendable {
    /// The member of the response that holds it.
    public enum Source: String, Hashable, Sendable, CaseIterable {
        /// `latest_receipt_info`, as Apple's servers had it.
        case latest = "latest_receipt_info"
        /// `latest_expired_receipt_info`, the same of a receipt of iOS 6 that is over.
        case latestExpired = "latest_expired_receipt_info"
        /// `receipt.in_app`, as it was when the receipt was made.
        case inApp = "in_app"
        /// `receipt` itself, which was the transaction until iOS 6.
        case receipt
        /// `pending_renewal_info`.
        case renewal = "pending_renewal_info"
        /// The response itself, where a receipt of iOS 6 has its renewal beside it.
        case response

        /// Whether it is about the next period, not about one that was bought.
        public var isRenewal: Bool { self == .renewal || self == .response }
    }

    /// Where it stood.
    public var source: Source
    /// Apple's `original_transaction_id`.
    public var originalTransactionID: String
    /// As of when it is.
    public var asOf: Timestamp
    /// Its text, byte for byte.
    public var bytes: [UInt8]
    /// What it says.
    public var fact: Fact
    /// SHA-256 of what it says, in a form that does not depend on spelling and order.
    public var contentDigest: [UInt8]
    /// What of it could not be read, as `field:problem`.
    public var anomalies: [String]
    /// Whether a value is there that no vocabulary has.
    public var isUnrecognised: Bool

    /// Reads an object; nil where it lacks the numbers without which it has no place.
    ///
    /// It is what a response is read with, and what evidence is read with again.
    ///
    /// - Parameters:
    ///   - bytes: the text of one JSON object.
    ///   - source: where it stood.
    ///   - originalTransactionID: which subscription it is about; nil takes its own.
    ///   - asOf: as of when it is.
    /// - Throws: `AppStoreError` for what is no JSON.
    public init?(
        _ bytes: [UInt8],
        source: Source,
        originalTransactionID: String? = nil,
        asOf: Timestamp
    ) throws(AppStoreError) {
        let document = try JSONDocument(bytes)
        self.init(document, source, originalTransactionID, asOf: asOf)
    }

    init?(
        _ document: JSONDocument,
        _ source: Source,
        _ originalTransactionID: String?,
        asOf: Timestamp
    ) {
        guard document.root.kind == .object, asOf.isStorable else { return nil }
        let own = Self.number(document["original_transaction_id"])
        guard let id = originalTransactionID ?? own else { return nil }
        let digest = CanonicalContent(document).digest
        var reader = FieldReader(document.root, prefix: source.isRenewal ? "renewal." : "")
        var fact = Fact(kind: .receipt, provenance: .receipt, factAt: asOf)
        if source.isRenewal {
            fact.renewal = RenewalFact(receipt: &reader, digest: digest, asOf: asOf)
        } else {
            guard let transaction = Self.number(document["transaction_id"]) else { return nil }
            fact.transaction = TransactionFact(
                receipt: &reader,
                transactionID: transaction,
                digest: digest,
                asOf: asOf
            )
        }
        self.source = source
        self.originalTransactionID = id
        self.asOf = asOf
        self.bytes = document.bytes
        self.fact = fact
        contentDigest = digest
        anomalies = reader.anomalies
        isUnrecognised = reader.hasUnknownValue
    }

    /// One of Apple's numbers, as a text or as a number; nil for anything else.
    ///
    /// Nobody signed it and it names a stream, so nothing but digits is taken: published responses
    /// have masked ones (`37xxxxxxxxx89`), and a word might be the name of a stream of ours.
    static func number(_ value: JSONValue?) -> String? {
        guard let text = Lenient.text(value), (1...20).contains(text.utf8.count),
            text.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            text.utf8.contains(where: { $0 != 0x30 })
        else { return nil }
        return text
    }
}

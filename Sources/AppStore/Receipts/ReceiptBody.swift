public import Ledger

/// A response of Apple's verifyReceipt, read.
///
/// It is read leniently: numbers and booleans may be texts, a list may be one object. Nothing in it
/// is signed, so nothing in it is verified; whoever has the bytes has made them.
public struct ReceiptBody: Sendable {
    /// The longest body that is read; Apple sends every transaction that there ever was.
    public static let sizeMaxBytes = JSONDocument.sizeMaxBytes

    /// Apple's status.
    public let status: ReceiptStatus
    /// The app that it names.
    public let bundleID: String?
    /// The environment that it names.
    public let environment: Environment?
    /// When Apple answered; nil in responses of iOS 6 receipts.
    public let requestDate: Timestamp?
    /// The last instant that it tells of, after which it was made; nil where it tells of none.
    public private(set) var lastInstant: Timestamp?

    private let document: JSONDocument

    /// Reads a body.
    ///
    /// - Throws: `ReceiptProblem` for what is no such body.
    public init(_ body: [UInt8]) throws(ReceiptProblem) {
        guard body.count <= Self.sizeMaxBytes else {
            throw ReceiptProblem(.tooLarge, "it has \(body.count) bytes")
        }
        do { document = try JSONDocument(body) } catch {
            throw ReceiptProblem(.badJSON, "\(error)")
        }
        if let problem = Self.otherForm(of: document) { throw problem }
        guard let code = Lenient.integer(document["status"]) else {
            throw ReceiptProblem(.notAReceipt, "it has no status that is a number")
        }
        status = ReceiptStatus(
            code,
            isMarkedRetryable: document["is_retryable"].flatMap { Lenient.bool($0) }
                ?? document["is-retryable"].flatMap { Lenient.bool($0) } ?? false
        )
        let receipt = document["receipt"]
        bundleID = Lenient.text(receipt?["bundle_id"]) ?? Lenient.text(receipt?["bid"])
        environment = try Self.environment(document, receipt)
        requestDate = Self.instant(receipt, "request_date")
        lastInstant = Self.lastInstant(of: document, isOver: status.code == 21_006)
    }

    /// What else the document is than a response of verifyReceipt.
    private static func otherForm(of document: JSONDocument) -> ReceiptProblem? {
        guard document.root.kind == .object else {
            return ReceiptProblem(.notAReceipt, "it is no JSON object")
        }
        if document["unified_receipt"] != nil || document["notification_type"] != nil {
            return ReceiptProblem(
                .versionOneNotification,
                "App Store Server Notifications version 1 are unsigned and retired, and carry the "
                    + "shared secret; nothing of it is kept. Verify its latest_receipt instead"
            )
        }
        if SignedInput.members.contains(where: { document[$0] != nil }) {
            return ReceiptProblem(.signedText, "it is signed by Apple; subledger ingest takes it")
        }
        return nil
    }

    private static func environment(
        _ document: JSONDocument,
        _ receipt: JSONValue?
    ) throws(ReceiptProblem) -> Environment? {
        let named = Lenient.text(document["environment"]).map { Environment($0) }
        let implied: Environment? =
            switch Lenient.text(receipt?["receipt_type"]) {
            case "Production", "ProductionVPP": .production
            case "ProductionSandbox", "ProductionVPPSandbox", "Sandbox": .sandbox
            default: nil
            }
        guard let named else { return implied }
        guard named == .production || named == .sandbox else {
            throw ReceiptProblem(.environment, "the environment is not a known one")
        }
        guard let implied, implied != named else { return named }
        throw ReceiptProblem(
            .environment,
            "it is of \(named), and its receipt_type says \(implied)"
        )
    }

    private static func instant(_ value: JSONValue?, _ key: String) -> Timestamp? {
        guard let value else { return nil }
        var reader = FieldReader(value)
        return reader.receiptInstant(key)
    }
}

// MARK: - What it tells of subscriptions

extension ReceiptBody {
    /// An object that cannot be read as anything.
    public struct Unreadable: Hashable, Sendable {
        /// Where it stood.
        public var source: ReceiptElement.Source
        /// Which of the list it is, from 1.
        public var number: Int
        /// What is wrong with it, by a stable name.
        public var reason: String
    }

    /// What was read of a body.
    public struct Content: Sendable {
        /// The transactions and renewals that it tells of, each once.
        public var elements: [ReceiptElement] = []
        /// What could not be read.
        public var unreadable: [Unreadable] = []

        /// Holds nothing yet.
        public init() {}
    }

    /// Reads what it tells of subscriptions.
    ///
    /// The order of a list means nothing, so nothing is taken from it. A transaction that stands in
    /// `latest_receipt_info` and in `in_app` is taken from the former, which Apple's servers made
    /// for the answer; `in_app` is as old as the receipt.
    ///
    /// - Parameter asOf: as of when the answer is.
    /// - Returns: what was read, and what could not be.
    public func content(asOf: Timestamp) -> Content {
        var content = Content()
        var seen: Set<String> = []
        let made = Self.instant(document["receipt"], "receipt_creation_date")
        for source in [ReceiptElement.Source.latest, .latestExpired, .inApp, .receipt] {
            for (index, value) in settled(objects(source), source, &content) {
                let transaction = ReceiptElement.number(value["transaction_id"])
                if let transaction, !seen.insert(transaction).inserted { continue }
                let instant = source == .inApp ? inAppInstant(value, made, asOf) : asOf
                append(value, source, index, as: nil, instant, to: &content)
            }
        }
        readRenewals(asOf, &content)
        return content
    }

    /// The objects of a list with their places, one for each transaction.
    ///
    /// Where two say different things of one transaction, the one that gives less is taken, wherever
    /// it stands: what was cancelled, or else what ends earlier. The other one is flagged.
    private func settled(
        _ objects: [JSONValue],
        _ source: ReceiptElement.Source,
        _ content: inout Content
    ) -> [(index: Int, value: JSONValue)] {
        func gives(_ value: JSONValue) -> (isWhole: Int, end: Timestamp) {
            let isWhole = Self.instant(value, "cancellation_date") == nil
            return (isWhole ? 1 : 0, Self.instant(value, "expires_date") ?? .latest)
        }
        var result: [(index: Int, value: JSONValue)] = []
        var places: [String: Int] = [:]
        for (index, value) in objects.enumerated() {
            guard let transaction = ReceiptElement.number(value["transaction_id"]),
                let place = places[transaction]
            else {
                if let transaction = ReceiptElement.number(value["transaction_id"]) {
                    places[transaction] = result.count
                }
                result.append((index, value))
                continue
            }
            let known = result[place]
            guard !value.raw.elementsEqual(known.value.raw) else { continue }
            let (own, other) = (gives(value), gives(known.value))
            let isLess =
                own == other
                ? value.raw.lexicographicallyPrecedes(known.value.raw) : own < other
            if isLess { result[place] = (index, value) }
            content.unreadable.append(
                Unreadable(
                    source: source,
                    number: (isLess ? known.index : index) + 1,
                    reason: "contradicted"
                )
            )
        }
        return result
    }

    /// As of when an element of `in_app` is: when the receipt was made, and not before it itself.
    private func inAppInstant(
        _ value: JSONValue,
        _ made: Timestamp?,
        _ asOf: Timestamp
    ) -> Timestamp {
        guard let made else { return asOf }
        let own = ["purchase_date", "cancellation_date"].compactMap { Self.instant(value, $0) }
        return min(asOf, own.reduce(made) { max($0, $1) })
    }

    /// The objects of a list, or the one object in its place.
    private func objects(_ source: ReceiptElement.Source) -> [JSONValue] {
        let receipt = document["receipt"]
        let value: JSONValue? =
            switch source {
            case .latest, .latestExpired, .renewal: document[source.rawValue]
            case .inApp: receipt?["in_app"]
            // Since iOS 7 it holds transactions and is none.
            case .receipt: receipt?["transaction_id"] == nil ? nil : receipt
            case .response: nil
            }
        guard let value, !value.isNull else { return [] }
        return value.kind == .array ? value.elements : [value]
    }

    private func append(
        _ value: JSONValue,
        _ source: ReceiptElement.Source,
        _ index: Int,
        as id: String?,
        _ asOf: Timestamp,
        to content: inout Content
    ) {
        func refuse(_ reason: String) {
            content.unreadable.append(
                Unreadable(source: source, number: index + 1, reason: reason)
            )
        }
        guard value.kind == .object else { return refuse("not_an_object") }
        guard let document = try? JSONDocument(Array(value.raw)),
            let element = ReceiptElement(document, source, id, asOf: asOf)
        else {
            let isNumbered = ReceiptElement.number(value["original_transaction_id"]) != nil
            return refuse(isNumbered ? "transaction_id" : "original_transaction_id")
        }
        content.elements.append(element)
    }

    private func readRenewals(_ asOf: Timestamp, _ content: inout Content) {
        var newest: [String: ReceiptElement] = [:]
        for element in content.elements where element.fact.transaction?.purchaseDate != nil {
            let id = element.originalTransactionID
            let known = newest[id]?.fact.transaction?.purchaseDate ?? .earliest
            if element.fact.transaction?.purchaseDate ?? .earliest >= known { newest[id] = element }
        }
        var renewals = Content()
        for (index, value) in objects(.renewal).enumerated() {
            let id = ReceiptElement.number(value["original_transaction_id"])
            // Published responses have masked numbers and those of somebody else.
            guard let id, newest[id] != nil else {
                renewals.unreadable.append(
                    Unreadable(
                        source: .renewal,
                        number: index + 1,
                        reason: "without_transaction"
                    )
                )
                continue
            }
            append(value, .renewal, index, as: nil, asOf, to: &renewals)
        }
        if objects(.renewal).isEmpty { readOwnRenewal(asOf, newest, &renewals) }
        // There is one for each product that was ever pending; the newest period's counts.
        var chosen: [String: Int] = [:]
        for (place, element) in renewals.elements.enumerated() {
            let id = element.originalTransactionID
            let product = newest[id]?.fact.transaction?.productID
            if chosen[id] == nil || element.fact.renewal?.productID == product {
                chosen[id] = place
            }
        }
        content.elements += chosen.values.sorted().map { renewals.elements[$0] }
        content.unreadable += renewals.unreadable
    }

    /// The renewal that stands in the response itself, as with receipts of iOS 6.
    private func readOwnRenewal(
        _ asOf: Timestamp,
        _ newest: [String: ReceiptElement],
        _ content: inout Content
    ) {
        guard newest.count == 1, let id = newest.keys.first,
            document["auto_renew_status"] != nil || document["expiration_intent"] != nil
        else { return }
        let names = [
            "auto_renew_product_id", "auto_renew_status", "expiration_intent",
            "grace_period_expires_date", "grace_period_expires_date_ms",
            "is_in_billing_retry_period", "price_consent_status",
        ]
        var text = Array("{".utf8)
        for name in names {
            guard let value = document[name], !value.isNull else { continue }
            if text.count > 1 { text.append(UInt8(ascii: ",")) }
            text += Array("\"\(name)\":".utf8) + value.raw
        }
        text.append(UInt8(ascii: "}"))
        let element = try? ReceiptElement(
            text,
            source: .response,
            originalTransactionID: id,
            asOf: asOf
        )
        if let element { content.elements.append(element) }
    }

    /// The last instant of what was bought, taken back or is over.
    private static func lastInstant(of document: JSONDocument, isOver: Bool) -> Timestamp? {
        let receipt = document["receipt"]
        let lists = [
            document["latest_receipt_info"], document["latest_expired_receipt_info"],
            receipt?["in_app"], receipt,
        ]
        var keys = ["purchase_date", "cancellation_date", "receipt_creation_date"]
        if isOver { keys.append("expires_date") }
        var last: Timestamp?
        for list in lists {
            guard let list else { continue }
            for value in list.kind == .array ? list.elements : [list] {
                for key in keys {
                    guard let instant = instant(value, key) else { continue }
                    last = max(last ?? instant, instant)
                }
            }
        }
        return last
    }
}

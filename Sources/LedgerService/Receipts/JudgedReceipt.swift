internal import AppStore
internal import Crypto
internal import EventLog
internal import Ledger

/// A verifyReceipt response with what is to become of it.
struct JudgedReceipt: Sendable {
    /// The number of the line on which it begins, from 1.
    var number: Int
    /// The response.
    var body: [UInt8]
    /// The app that it is about; nil for one that tells of nothing.
    var app: AppKey?
    /// What it tells.
    var content = ReceiptBody.Content()

    /// What a response is judged by.
    struct Terms: Sendable {
        /// The accepted apps.
        var apps: [AcceptedApp]
        /// The app of a response that names none.
        var bundleID: String?
        /// The environment of a response that names none.
        var environment: Environment?
        /// What our clock says.
        var now: Timestamp
    }

    /// Reads a response and finds the app that it is about.
    ///
    /// - Parameters:
    ///   - body: the response.
    ///   - number: the line on which it begins.
    ///   - receivedAt: when it was received, where we received it ourselves.
    ///   - terms: what it is judged by.
    /// - Throws: `ReceiptProblem` where nothing of it is used.
    init(
        _ body: [UInt8],
        number: Int,
        receivedAt: Timestamp?,
        _ terms: Terms
    ) throws(ReceiptProblem) {
        self.number = number
        self.body = body
        let receipt = try ReceiptBody(body)
        guard receipt.status.isValid else {
            throw ReceiptProblem(
                .status,
                "\(receipt.status.code): \(receipt.status.meaning)"
            )
        }
        let asOf = receipt.requestDate ?? receivedAt ?? receipt.lastInstant
        let content = receipt.content(asOf: asOf ?? .earliest)
        guard !content.elements.isEmpty || !content.unreadable.isEmpty else { return }
        app = try Self.app(of: receipt, terms)
        self.content = content
        guard !content.elements.isEmpty else { return }
        guard let asOf else {
            throw ReceiptProblem(
                .instantMissing,
                "it has no request_date, and no date of a purchase can be read"
            )
        }
        guard asOf <= terms.now.adding(Verifier.clockSkewMax) else {
            throw ReceiptProblem(.inTheFuture, "it says that it was made at \(asOf)")
        }
    }

    private static func app(
        of receipt: ReceiptBody,
        _ terms: Terms
    ) throws(ReceiptProblem) -> AppKey {
        guard let bundleID = receipt.bundleID ?? terms.bundleID else {
            throw ReceiptProblem(.bundleID, "it names no app: give --bundle-id ID")
        }
        guard let accepted = terms.apps.first(where: { $0.bundleID == bundleID }) else {
            throw ReceiptProblem(.bundleID, "it belongs to an app that is not accepted here")
        }
        guard let environment = receipt.environment ?? terms.environment else {
            throw ReceiptProblem(
                .environment,
                "it names no environment: give --environment Sandbox|Production"
            )
        }
        guard accepted.environments.contains(environment) else {
            throw ReceiptProblem(
                .environment,
                "\(environment) is not accepted for the app; add it to the app's environments"
            )
        }
        return AppKey(bundleID: bundleID, environment: environment)
    }

    /// What it tells as events, in the order of the response.
    var events: [NewEvent] {
        guard let app else { return [] }
        let correlation = correlation
        return content.elements.map {
            ReceiptReading(app: app, element: $0).event(correlation: correlation)
        }
    }

    /// The response itself as an event, from which it comes back byte for byte.
    var bodyEvent: NewEvent? {
        guard let app else { return nil }
        return NewEvent(
            app: app,
            stream: "api:receipt",
            eventKey: "a:verifyReceipt:\(correlation)",
            kind: .apiResponse,
            provenance: .receipt,
            correlation: correlation,
            received: body,
            form: .raw,
            contentDigest: SHA256.digest(body)
        )
    }

    /// What its events have in common.
    private var correlation: String { hexadecimal(SHA256.digest(body)) }

    /// What of it could not be read, one line for each object.
    var flags: [RefusedLine] {
        var lines: [RefusedLine] = []
        for element in content.elements where !element.anomalies.isEmpty {
            lines.append(
                RefusedLine(
                    line: number,
                    outcome: .flagged,
                    reason: "unreadable_field",
                    detail: "\(element.source.rawValue) of \(element.originalTransactionID): "
                        + element.anomalies.joined(separator: ", ")
                )
            )
        }
        for object in content.unreadable {
            let what =
                switch object.reason {
                case "without_transaction":
                    "it is about a subscription of which the response has no transaction"
                case "contradicted":
                    "another object says something else of the same transaction, and gives less: "
                        + "that one is used"
                default: "\(object.reason) is missing or unreadable; the object makes no event"
                }
            lines.append(
                RefusedLine(
                    line: number,
                    outcome: .flagged,
                    reason: object.reason,
                    detail: "\(object.source.rawValue), number \(object.number): \(what)"
                )
            )
        }
        return lines
    }
}

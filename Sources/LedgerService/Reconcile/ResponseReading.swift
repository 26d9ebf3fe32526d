internal import AppStore
internal import Crypto
internal import EventLog
internal import Ledger

/// What a body of Apple's Server API comes to: one fact for each signed text and each status in it.
struct ResponseReading: Sendable {
    /// One fact of it.
    enum Part: Sendable {
        /// A document that is ours.
        case admitted(Admission)
        /// Nothing of it is kept but the body around it.
        case rejected(Rejection)
    }

    /// A notification with Apple's own words on sending it.
    struct Delivery: Sendable {
        var app: AppKey
        var stream: String
        var notificationUUID: String
        var notificationType: String?
        var attempts: [APIAnswer.SendAttempt]
    }

    /// The app that the body is about; nil where neither the caller nor the body names one.
    private(set) var app: AppKey?
    /// The facts, in the order of the body.
    private(set) var parts: [Part] = []
    /// The notifications that Apple says something of beside their signed text.
    private(set) var deliveries: [Delivery] = []
    /// The app of the first text that is ours, for a body that names none.
    private var foundApp: AppKey?
    /// Who vouched for the texts of the body.
    private(set) var layers: [EvidenceLayer] = []

    private let correlation: String?

    /// Verifies the signed texts of a body.
    ///
    /// - Parameters:
    ///   - answer: the body.
    ///   - app: the app that was asked for; nil takes the one that the body names.
    ///   - correlation: what its facts have in common.
    ///   - verifier: knows the anchors and the accepted apps.
    ///   - now: what our clock says.
    init(
        _ answer: APIAnswer,
        of app: AppKey?,
        correlation: String?,
        verifier: Verifier,
        now: Timestamp
    ) {
        self.correlation = correlation
        self.app = app ?? Self.named(by: answer)
        var documents: [VerifiedDocument?] = []
        for item in answer.items {
            switch verifier.verify(item.text, now: now) {
            case .undecided(let rejection):
                documents.append(nil)
                parts.append(.rejected(rejection))
            case .rejected(let rejection):
                documents.append(nil)
                parts.append(Self.part(refused: rejection, item.text))
            case .trusted(let document):
                if let rejection = disagreement(of: document) {
                    documents.append(nil)
                    parts.append(.rejected(rejection))
                } else {
                    documents.append(document)
                    admit(document, item)
                }
            }
        }
        for subscription in answer.subscriptions { read(subscription, among: documents) }
    }

    private static func named(by answer: APIAnswer) -> AppKey? {
        guard let bundleID = answer.bundleID, let environment = answer.environment else {
            return nil
        }
        return AppKey(bundleID: bundleID, environment: environment)
    }

    private static func part(refused rejection: Rejection, _ text: [UInt8]) -> Part {
        guard rejection.belongsInQuarantine else { return .rejected(rejection) }
        let document = QuarantinedDocument(received: text, reason: rejection.reason.rawValue)
        return .admitted(.quarantine(document, detail: rejection.detail))
    }

    /// Why a genuine text does not belong into this body; nil where it does.
    private func disagreement(of document: VerifiedDocument) -> Rejection? {
        guard let app else { return nil }
        if let bundleID = document.bundleID, bundleID != app.bundleID {
            return Rejection(
                reason: .bundleID,
                detail: "it is of another app than the one that was asked for"
            )
        }
        if document.environment != app.environment {
            return Rejection(
                reason: .environment,
                detail: "it is of \(document.environment), \(app.environment) was asked"
            )
        }
        return nil
    }

    private mutating func admit(_ document: VerifiedDocument, _ item: APIAnswer.Item) {
        var admission = Admission(document)
        switch admission {
        case .event(var event, let isUnrecognised):
            event.correlation = correlation
            layers += event.layers
            foundApp = foundApp ?? event.app
            admission = .event(event, isUnrecognised: isUnrecognised)
            if let uuid = document.notificationUUID, !item.sendAttempts.isEmpty {
                deliveries.append(
                    Delivery(
                        app: event.app,
                        stream: event.stream,
                        notificationUUID: uuid,
                        notificationType: document.notificationType,
                        attempts: item.sendAttempts
                    )
                )
            }
        case .unattributed(var event, let isUnrecognised):
            event.correlation = correlation
            layers += event.layers
            if let app {
                // A renewal info names no app; the answer that it stands in does.
                event.app = app
                admission = .event(event, isUnrecognised: isUnrecognised)
            } else {
                admission = .unattributed(event, isUnrecognised: isUnrecognised)
            }
        case .quarantine: break
        }
        parts.append(.admitted(admission))
    }

    /// Takes the status of a subscription, if a signed text beside it is of the same one.
    private mutating func read(
        _ subscription: APIAnswer.Subscription,
        among documents: [VerifiedDocument?]
    ) {
        let own = documents[subscription.items].compactMap(\.self)
        guard let app, let id = subscription.originalTransactionID,
            let status = subscription.status,
            own.contains(where: { $0.originalTransactionID == id })
        else { return }
        let readAt = own.map(\.signedDate).max() ?? .earliest
        let reading = StatusReading(
            app: app,
            originalTransactionID: id,
            status: status,
            readAt: readAt
        )
        let event = reading.event(correlation: correlation)
        parts.append(.admitted(.event(event, isUnrecognised: !(1...5).contains(status))))
    }

    /// The body itself as an event, from which it comes back byte for byte.
    ///
    /// - Parameters:
    ///   - body: the body.
    ///   - endpoint: what was asked, or `import` for a saved one.
    ///   - run: what its stream is named after.
    ///   - requestID: its own id.
    /// - Returns: the event; nil where nobody says which app it is about.
    func event(of body: [UInt8], endpoint: String, run: String, requestID: String) -> NewEvent? {
        guard let app = app ?? foundApp else { return nil }
        return NewEvent(
            app: app,
            stream: "api:\(run)",
            eventKey: "a:\(endpoint):\(requestID)",
            kind: .apiResponse,
            provenance: .tls,
            correlation: requestID,
            received: body,
            form: .response,
            layers: layers,
            contentDigest: SHA256.digest(body)
        )
    }
}

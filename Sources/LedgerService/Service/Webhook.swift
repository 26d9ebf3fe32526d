package import AppStore
internal import Crypto
internal import EventLog
package import Ledger

/// Receives App Store Server Notifications: what is answered with 200 is kept for good.
///
/// A notification is verified on the caller's thread and handed to the committer; the answer comes
/// when the COMMIT did. Source: DESIGN section 7; Apple, "Responding to App Store Server
/// Notifications" (200 to 206 is success, anything else is sent again in Production).
package final class Webhook: Sendable {
    /// What is answered.
    package struct Answer: Hashable, Sendable {
        /// The HTTP status: 200, 400, 413 or 503.
        package var status: Int
        /// Why, by a stable name: what became of it with 200, and else what was wrong.
        package var reason: String
        /// The same in words; safe to log.
        package var detail: String
        /// After how many seconds it should be sent again; nil where it should not be.
        package var retryAfterSeconds: Int?
        /// The event that holds it.
        package var position: Int64?
    }

    /// The largest body; Apple's are about 20 kB.
    package static let bodySizeMaxBytes = 384 * 1024
    /// After how many seconds a sender should try again.
    static let retrySeconds = 30
    /// The same where nothing more is quarantined today.
    static let quarantineRetrySeconds = 3600

    private let verifier: Verifier
    private let committer: Committer
    private let refusals: RefusalBook
    private let watch: DeliveryWatch?
    private let lane: VerificationLane?
    private let now: @Sendable () -> Timestamp
    /// What was measured.
    package let measures = Measures()

    /// Makes a webhook.
    ///
    /// - Parameters:
    ///   - verifier: knows the anchors and the accepted apps.
    ///   - committer: writes what is accepted.
    ///   - refusals: remembers what is not.
    ///   - watch: sees when more is refused than accepted.
    ///   - lane: verifies Sandbox where Production must not wait for it; nil verifies all at once.
    ///   - now: our clock.
    package init(
        verifier: Verifier,
        committer: Committer,
        refusals: RefusalBook,
        watch: DeliveryWatch? = nil,
        lane: VerificationLane? = nil,
        now: @escaping @Sendable () -> Timestamp
    ) {
        self.verifier = verifier
        self.committer = committer
        self.refusals = refusals
        self.watch = watch
        self.lane = lane
        self.now = now
    }

    /// Receives a body.
    ///
    /// - Parameters:
    ///   - body: `{"signedPayload":"…"}` as Apple posts it.
    ///   - peer: who sent it, for the list of refusals.
    ///   - answer: called once, on this thread, the lane's or the committer's.
    package func receive(
        _ body: [UInt8],
        from peer: String,
        answer: @escaping @Sendable (Answer) -> Void
    ) {
        let text: [UInt8]
        switch Self.signedPayload(of: body) {
        case .failure(let rejection):
            return answer(refuse(rejection, body, text: nil, peer))
        case .success(let found): text = found
        }
        guard let lane else { return judge(text, of: body, from: peer, answer) }
        guard Self.claimsSandbox(text) else {
            lane.noteProduction()
            return judge(text, of: body, from: peer, answer)
        }
        guard lane.isNeeded else { return judge(text, of: body, from: peer, answer) }
        let isTaken = lane.submit { [self] in judge(text, of: body, from: peer, answer) }
        if !isTaken { answer(refuseAsBusy()) }
    }

    /// Verifies a signed text and hands it over, or refuses it.
    private func judge(
        _ text: [UInt8],
        of body: [UInt8],
        from peer: String,
        _ answer: @escaping @Sendable (Answer) -> Void
    ) {
        switch verifier.verify(text, now: now()) {
        case .undecided(let rejection):
            answer(refuse(rejection, body, text: text, peer))
        case .rejected(let rejection):
            guard rejection.belongsInQuarantine else {
                return answer(refuse(rejection, body, text: text, peer))
            }
            let document = QuarantinedDocument(received: text, reason: rejection.reason.rawValue)
            commit(.quarantine(document, detail: rejection.detail), answer)
        case .trusted(let document):
            guard document.kind == .notification else {
                let rejection = Rejection(
                    reason: .malformedJWS,
                    detail: "signedPayload is a \(document.kind.rawValue), not a notification"
                )
                return answer(refuse(rejection, body, text: text, peer))
            }
            commit(Admission(document, postedIn: body).prepared(), answer)
        }
    }

    private func commit(
        _ admission: Admission,
        _ answer: @escaping @Sendable (Answer) -> Void
    ) {
        let isUnrecognised: Bool
        if case .event(_, true) = admission {
            isUnrecognised = true
        } else {
            isUnrecognised = false
        }
        let isTaken = committer.submit(admission) { [self] reception in
            let settled = Self.settled(reception)
            measures.count(settled.reason)
            if settled.status == 200 {
                watch?.note(admission.origin, isAccepted: true)
            } else if case .quarantineFull = reception {
                watch?.note(admission.origin, isAccepted: false)
            }
            if isUnrecognised, settled.reason == "stored" { measures.unrecognised.add(1) }
            answer(settled)
        }
        if !isTaken { answer(refuseAsBusy()) }
    }

    private func refuseAsBusy() -> Answer {
        measures.count("busy")
        return Answer(
            status: 503,
            reason: "busy",
            detail: "more waits to be written than may wait; send it again",
            retryAfterSeconds: 5
        )
    }

    /// Whether a signed text says that it is of the Sandbox, as Apple writes it; unverified.
    private static func claimsSandbox(_ text: [UInt8]) -> Bool {
        let dot = UInt8(ascii: ".")
        guard let first = ByteScan.first(dot, in: text[...]),
            let second = ByteScan.first(dot, in: text[(first + 1)...])
        else { return false }
        let encoded = text[(first + 1)..<second]
        // Apple writes it before the texts that are signed on their own; so mostly these bytes tell.
        if let beginning = Base64URL.decode(encoded.prefix(claimLengthMax)) {
            if ByteScan.contains(beginning, sandboxClaim) { return true }
            if ByteScan.contains(beginning, productionClaim) { return false }
        }
        return Base64URL.decode(encoded).map { ByteScan.contains($0, sandboxClaim) } ?? false
    }

    /// How many characters of a payload are looked at first; a multiple of four, which decodes whole.
    private static let claimLengthMax = 1024
    private static let productionClaim = Array("\"environment\":\"Production\"".utf8)
    private static let sandboxClaim = Array("\"environment\":\"Sandbox\"".utf8)

    private static func settled(_ reception: Committer.Reception) -> Answer {
        switch reception {
        case .kept(.appended(let position)):
            Answer(status: 200, reason: "stored", detail: "it is stored", position: position)
        case .kept(.duplicate(let position)):
            Answer(
                status: 200,
                reason: "duplicate",
                detail: "it was stored before",
                position: position
            )
        case .kept(.conflict(let position)):
            Answer(
                status: 200,
                reason: "conflict",
                detail: "an event with its UUID says something else; both are kept",
                position: position
            )
        case .kept(.quarantined(let reason)):
            Answer(
                status: 200,
                reason: "quarantined",
                detail: "it is kept aside and nothing follows from it: \(reason)"
            )
        case .quarantineFull:
            Answer(
                status: 503,
                reason: "quarantine_full",
                detail: "it cannot become an event, and no more is kept aside today",
                retryAfterSeconds: Self.quarantineRetrySeconds
            )
        case .failed(let error):
            // The database's own words may name hosts; they are for the log, not for strangers.
            Answer(
                status: 503,
                reason: "database_unavailable",
                detail: "it could not be stored (\(error.code)); send it again",
                retryAfterSeconds: Self.retrySeconds
            )
        }
    }

    private func refuse(
        _ rejection: Rejection,
        _ body: [UInt8],
        text: [UInt8]?,
        _ peer: String
    ) -> Answer {
        measures.count(rejection.reason.rawValue)
        var refusal = RefusedDelivery(
            at: now(),
            reason: rejection.reason.rawValue,
            sizeBytes: body.count,
            digest: SHA256.digest(body),
            peer: peer
        )
        if let text, let payload = SignedInput.unverifiedPayload(of: text) {
            refusal.noteClaims(ofPayload: payload)
        }
        refusals.add(refusal)
        watch?.note(DeliveryWatch.Origin(refusal.environment), isAccepted: false)
        let isTemporary = rejection.reason.isTemporary
        return Answer(
            status: isTemporary ? 503 : rejection.reason == .tooLarge ? 413 : 400,
            reason: rejection.reason.rawValue,
            detail: rejection.detail,
            retryAfterSeconds: isTemporary ? Self.retrySeconds : nil
        )
    }

    /// The text of `{"signedPayload":"…"}`; other members are passed over, as Apple may add some.
    private static func signedPayload(of body: [UInt8]) -> Result<[UInt8], Rejection> {
        let document: JSONDocument
        do { document = try JSONDocument(body) } catch {
            let reason = error.code == .duplicateKey ? Reason.duplicateKey : .badJSON
            return .failure(Rejection(reason: reason, detail: "the body: \(error)"))
        }
        guard let text = document["signedPayload"]?.textBytes else {
            return .failure(
                Rejection(
                    reason: .malformedJWS,
                    detail: "the body has no text signedPayload; version 1 notifications, which "
                        + "Apple has deprecated, are not read"
                )
            )
        }
        return .success(text)
    }
}

extension Admission {
    /// Where it belongs, for the watch.
    fileprivate var origin: DeliveryWatch.Origin {
        switch self {
        case .event(let event, _), .unattributed(let event, _):
            DeliveryWatch.Origin("\(event.app.environment)")
        case .quarantine(let document, _):
            DeliveryWatch.Origin(document.app.map { "\($0.environment)" })
        }
    }
}

extension Webhook {
    /// What a webhook measures.
    package final class Measures: Sendable {
        private let counters: [String: Counter]
        /// How many had a type or value that this program does not know.
        package let unrecognised = Counter()

        /// The reasons by which deliveries are counted: all that an answer can have.
        package static let reasons =
            [
                "stored", "duplicate", "conflict", "quarantined", "quarantine_full", "busy",
                "database_unavailable",
            ]
            + Reason.allCases.map(\.rawValue)

        init() {
            counters = Dictionary(uniqueKeysWithValues: Self.reasons.map { ($0, Counter()) })
        }

        func count(_ reason: String) { counters[reason]?.add(1) }

        /// How many deliveries were answered for a reason.
        package func value(of reason: String) -> Int { counters[reason]?.value ?? 0 }
    }
}

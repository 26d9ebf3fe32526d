internal import AppStore
internal import Crypto
public import EventLog
public import Ledger
public import Postgres

/// The steps of an extension, for tests that stop the program at one of them.
enum ExtensionPause: CaseIterable {
    /// Apple was asked how the subscription stands.
    case refreshed
    /// What will be done is decided, and nothing is written.
    case decided
    /// The request is in the log, and nothing is sent.
    case requested
    /// Apple's answer is here, and not in the log.
    case answered
    /// It is in the log.
    case recorded
}

/// Extends subscriptions with a trail: what is asked for is in the log before Apple is, and what
/// Apple says afterwards; a crash in between leaves a request whose outcome is unknown, which is
/// settled by reading the subscription and never by asking blindly again.
public final class Extensions {
    let reading: Connection
    let appender: Appender
    let gateway: (any ExtensionGateway)?
    let settings: ExtensionSettings
    let now: () -> Timestamp
    /// Who this program is, for the audit.
    public var serviceIdentity: String?

    /// Called at each step; tests stop the program there.
    var pause: (ExtensionPause) throws -> Void = { _ in }

    /// How often a decision is made anew when the subscription has news meanwhile.
    static let attempts = 8

    /// Makes it.
    ///
    /// - Parameters:
    ///   - reading: a session that may read everything.
    ///   - appending: a session that may append, which nothing else uses meanwhile.
    ///   - gateway: what reaches Apple; nil where nothing is set up.
    ///   - settings: when others must approve, and the like.
    ///   - now: our clock.
    /// - Throws: `EventLogError` when the session cannot be used.
    public init(
        reading: Connection,
        appending: Connection,
        gateway: (any ExtensionGateway)?,
        settings: ExtensionSettings = ExtensionSettings(),
        now: @escaping () -> Timestamp
    ) throws(EventLogError) {
        self.reading = reading
        self.gateway = gateway
        self.settings = settings
        self.now = now
        appender = try Appender(appending)
    }

    /// Asks for an extension, and has it done where nobody else must approve.
    ///
    /// - Returns: what became of it; a refusal by our own rules is a result, and recorded.
    /// - Throws: `ExtensionProblem` where nothing is recorded; `EventLogError`.
    public func request(_ wish: ExtensionWish, by actor: ExtensionActor) throws -> ExtensionResult {
        try check(wish, actor)
        let (key, app) = try find(wish)
        if let before = try replay(wish, key, actor) { return before }
        var refreshFailure: String?
        var standing = try ExtensionStanding(key, app, at: now(), reading)
        // What our own log refuses needs no question to Apple.
        if refusal(of: standing, wish) == nil, !wish.withoutFreshStatus {
            do {
                guard let gateway else { throw ExtensionProblem.noGateway }
                try gateway.refreshStatuses(of: wish.subscription, in: app)
            } catch let error as EventLogError {
                throw error
            } catch {
                refreshFailure = "\(error)"
            }
        }
        try pause(.refreshed)
        for _ in 0..<Self.attempts {
            standing = try ExtensionStanding(key, app, at: now(), reading)
            // The same request may have come twice at a time: whatever is in the standing was first.
            if let before = try replay(wish, key, actor) { return before }
            do {
                return try decide(wish, actor, standing, refreshFailure)
            } catch let error as EventLogError {
                // News came in between: look again, and judge what is there now.
                guard error.code == .stale else { throw error }
            }
        }
        throw EventLogError(.temporary, "\(key) has news again and again; try later")
    }

    private func decide(
        _ wish: ExtensionWish,
        _ actor: ExtensionActor,
        _ standing: ExtensionStanding,
        _ refreshFailure: String?
    ) throws -> ExtensionResult {
        let ineligibility = standing.ineligibility
        let refusal =
            self.refusal(of: standing, wish)
            ?? (refreshFailure == nil ? nil : ExtensionRule.statusUnavailable)
        var note = ExtensionNote(
            .extensionRequested,
            app: standing.app,
            stream: standing.key.stream,
            request: .random(),
            at: now()
        )
        fill(&note, wish, actor)
        standing.freeze(into: &note)
        note[text: "ineligible_rule"] = ineligibility?.rawValue
        note[bool: "fresh_status"] = !wish.withoutFreshStatus && refreshFailure == nil
        note[text: "binding"] = Self.binding(of: note)
        if refusal == nil {
            note[text: "approval_rule"] = settings.approvalRule(
                days: wish.days,
                reason: wish.reason,
                used: max(standing.usedByChain, standing.usedByOwner),
                isMass: false
            )
        }
        try pause(.decided)
        var result = ExtensionResult(note, standing)
        result.detail = refreshFailure
        if wish.isDryRun {
            result.isDryRun = true
            result.rule = refusal?.rawValue
            result.outcome = refusal == nil ? .requested : .refusedLocally
            return result
        }
        if let refusal {
            var refused = step(.extensionRefused, of: note)
            actor.sign(&refused)
            refused[text: "rule"] = refusal.rawValue
            refused[text: "note"] = refreshFailure
            try append([note, refused], expecting: standing.positions)
            result.rule = refusal.rawValue
            result.outcome = .refusedLocally
            return result
        }
        guard note[text: "approval_rule"] == nil else {
            try append([note], expecting: standing.positions)
            result.outcome = .requested
            return result
        }
        guard let gateway else { throw ExtensionProblem.noGateway }
        try append([note, submission(of: note, attempt: 1)], expecting: standing.positions)
        try pause(.requested)
        return try send(note, attempt: 1, through: gateway, result)
    }

    /// Why our own rules refuse a wish; nil where they do not.
    private func refusal(
        of standing: ExtensionStanding,
        _ wish: ExtensionWish
    ) -> ExtensionRule? {
        if standing.interval == nil { return .notAutoRenewable }
        if standing.open() != nil { return .inProgress }
        if !wish.again, standing.history.extensions.contains(where: { isOn(wish.ticket, $0) }) {
            return .duplicateTicket
        }
        guard let rule = standing.ineligibility else { return nil }
        return wish.attemptIneligible && rule.isApples ? nil : rule
    }

    /// Whether an extension that was done, or may have been, was on a ticket.
    private func isOn(_ ticket: String, _ record: ExtensionRecord) -> Bool {
        guard record.countsFrom != nil, let request = record.request else { return false }
        let known = try? ExtensionNote.request(request, reading)?.note
        return known?[text: "ticket"] == ticket
    }

    // MARK: - Sending

    /// Sends a request that is in the log, and records what came back.
    func send(
        _ request: ExtensionNote,
        attempt: Int64,
        through gateway: any ExtensionGateway,
        _ result: ExtensionResult
    ) throws -> ExtensionResult {
        let days = Int(request[int: "days"] ?? 0)
        let order = ExtensionOrder(
            days: days,
            reason: ExtensionReason(rawValue: Int(request[int: "reason_code"] ?? 0)) ?? .undeclared,
            request: request.request
        )
        let reply = gateway.extend(request.stream, order, in: request.app)
        try pause(.answered)
        let note: ExtensionNote
        if reply.wasNotSent, attempt == 1 {
            // It never left, and nobody has to wonder what became of it.
            var refused = step(.extensionRefused, of: request)
            refused[text: "rule"] = ExtensionRule.notSent.rawValue
            refused[text: "failure"] = reply.failure
            note = refused
        } else {
            note = answer(reply, to: request, attempt: attempt, gateway.keyID(of: request.app))
        }
        try append([note])
        try pause(.recorded)
        var result = result
        result.take(note)
        return result
    }

    /// The event for what came back: an answer, or that there is none that says what was done.
    func answer(
        _ reply: ExtensionReply,
        to request: ExtensionNote,
        attempt: Int64,
        _ keyID: String?
    ) -> ExtensionNote {
        let verdict = AppleVerdict(reply)
        let kind: EventKind =
            request.kind == .massExtensionRequested
            ? (verdict.success == nil ? .massExtensionUnanswered : .massExtensionAnswered)
            : (verdict.success == nil ? .extensionUnanswered : .extensionAnswered)
        var note = step(kind, of: request)
        note[int: "attempt"] = attempt
        note[text: "apple_key_id"] = keyID
        note[int: "latency_ms"] = reply.latency.rawValue
        note[int: "http_status"] = reply.httpStatus.map { Int64($0) }
        note[text: "failure"] = verdict.failure
        keep(reply, in: &note)
        note[bool: "success"] = verdict.success
        note[instant: "effective_date"] = verdict.effectiveDate
        note[text: "web_order_line_item_id"] = verdict.webOrderLineItemID
        note[int: "apple_error_code"] = verdict.errorCode
        note[text: "apple_error_message"] = verdict.errorMessage
        return note
    }

    /// Writes Apple's body into a note, byte for byte.
    func keep(_ reply: ExtensionReply, in note: inout ExtensionNote) {
        guard reply.httpStatus != nil else { return }
        note[text: "body_digest"] = hexadecimal(SHA256.digest(reply.body))
        // As text where it is text that every reader can hold, so that psql shows it.
        if let text = String(validating: reply.body, as: UTF8.self), !text.utf8.contains(0) {
            note[text: "body"] = text
        } else {
            note[text: "body_base64"] = Base64URL.encode(reply.body)
        }
    }

    // MARK: - Notes

    func submission(of request: ExtensionNote, attempt: Int64) -> ExtensionNote {
        let kind: EventKind =
            request.kind == .massExtensionRequested ? .massExtensionSubmitted : .extensionSubmitted
        var note = step(kind, of: request)
        note[int: "attempt"] = attempt
        note[text: "apple_key_id"] = gateway?.keyID(of: request.app)
        return note
    }

    func step(_ kind: EventKind, of request: ExtensionNote) -> ExtensionNote {
        ExtensionNote(
            kind,
            app: request.app,
            stream: request.stream,
            request: request.request,
            at: now()
        )
    }

    /// Appends notes in one transaction.
    func append(
        _ notes: [ExtensionNote],
        expecting positions: [SubscriptionKey: Int64] = [:],
        quiet: Appender.Quiet? = nil
    ) throws(EventLogError) {
        let outcomes = try appender.append(
            notes.map { $0.event() },
            expecting: positions,
            quiet: quiet
        )
        for outcome in outcomes {
            switch outcome {
            case .appended, .duplicate: break
            case .conflict(let position):
                throw EventLogError(
                    .stale,
                    "somebody else did that step meanwhile",
                    position: position
                )
            case .quarantined(let reason):
                throw EventLogError(.invalid, "the database cannot hold it: \(reason)")
            }
        }
    }

    /// What an approval is for: SHA-256 of what must not change between request and approval.
    static func binding(of note: ExtensionNote) -> String {
        var parts = [
            note.app.bundleID, note.app.environment.description, note.stream,
            "\(note[int: "days"] ?? 0)", "\(note[int: "reason_code"] ?? 0)",
            note[text: "ticket"] ?? "", note[instant: "expires_before"]?.description ?? "",
            note[text: "product_id"] ?? "",
        ]
        // For all storefronts and for some are different things to approve.
        if note.kind == .massExtensionRequested { parts.append(note[text: "storefronts"] ?? "") }
        let text = parts.map { "\($0.utf8.count):\($0)" }.joined()
        return hexadecimal(SHA256.digest(Array(text.utf8)))
    }
}

extension UniqueID {
    /// A version 4 UUID.
    static func random() -> UniqueID {
        var generator = SystemRandomNumberGenerator()
        var bits = UInt128(generator.next()) << 64 | UInt128(generator.next())
        bits = bits & ~(UInt128(0xF) << 76) | UInt128(4) << 76
        bits = bits & ~(UInt128(3) << 62) | UInt128(2) << 62
        return UniqueID(bits: bits)
    }
}

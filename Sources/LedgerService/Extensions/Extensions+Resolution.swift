internal import EventLog
public import Ledger
internal import Postgres

extension Extensions {
    /// Settles a request whose answer was lost.
    ///
    /// The subscription is read first: where its end has moved as asked, Apple did it. Where it has
    /// not moved and some time has passed, the request is sent once more under the same identifier;
    /// after that, and where the end has moved otherwise, a person must decide.
    ///
    /// - Parameters:
    ///   - request: our `requestIdentifier`.
    ///   - actor: who settles it.
    ///   - decision: what a person decided after looking, where it was sent twice.
    ///   - note: why.
    /// - Returns: what became of it.
    /// - Throws: `ExtensionProblem`, `.tooEarly`, `.movedOtherwise` and `.needsDecision` among them;
    ///   `EventLogError`.
    public func resolve(
        _ request: UniqueID,
        by actor: ExtensionActor,
        decision: ExtensionStep.Resolution? = nil,
        note: String? = nil
    ) throws -> ExtensionResult {
        if let note { try checkLines(note, "note", ExtensionWish.justificationMax) }
        guard let gateway else { throw ExtensionProblem.noGateway }
        let (asked, _, before) = try read(request)
        guard before.outcome == .unknown, before.isOpen else {
            guard [.accepted, .confirmed].contains(before.outcome) else {
                throw ExtensionProblem.notOpen(
                    "there is nothing to settle: it is \(before.outcome.rawValue)"
                )
            }
            return try status(of: request)
        }
        if asked.kind == .massExtensionRequested {
            return try resolveMass(asked, before, by: actor, decision, note)
        }
        try refresh(asked, through: gateway)
        let (_, standing, record) = try read(request)
        // What Apple signed has settled it, or tells that the end moved as asked.
        guard record.outcome == .unknown else { return try status(of: request) }
        let end = presentEnd(asked, standing)
        let frozen = asked[instant: "expires_before"]
        let wanted = frozen?.adding(.days(asked[int: "days"] ?? 0))
        if let end, end == wanted {
            try settle(asked, as: .extended, by: actor, read: end, note, standing)
            return try status(of: request)
        }
        // An end that moved, and not as asked, does not say whether this request had a part in it.
        let hasMovedOtherwise = end != nil && frozen != nil && end != frozen
        if let decision {
            guard record.attempts >= 2 || hasMovedOtherwise else {
                throw ExtensionProblem.notOpen("it was sent once; it is sent again first")
            }
            try settle(asked, as: decision, by: actor, read: end, note, standing)
            return try status(of: request)
        }
        if hasMovedOtherwise, let end { throw ExtensionProblem.movedOtherwise(end) }
        let wait = try lastSent(asked).adding(settings.resendAfter)
        guard now() >= wait else { throw ExtensionProblem.tooEarly(wait) }
        guard record.attempts < 2 else { throw ExtensionProblem.needsDecision }
        let attempt = Int64(record.attempts) + 1
        var again = submission(of: asked, attempt: attempt)
        actor.sign(&again)
        try append([again], expecting: standing.positions)
        try pause(.requested)
        return try send(asked, attempt: attempt, through: gateway, ExtensionResult(asked, standing))
    }

    /// Settles a mass request: Apple says whether it knows it, and is told once more where it does
    /// not.
    private func resolveMass(
        _ asked: ExtensionNote,
        _ before: ExtensionRecord,
        by actor: ExtensionActor,
        _ decision: ExtensionStep.Resolution?,
        _ note: String?
    ) throws -> ExtensionResult {
        let answer = try massStatus(asked.request)
        let (_, standing, record) = try read(asked.request)
        // Apple knows it, or it was just sent again.
        guard record.outcome == .unknown, record.attempts == before.attempts else {
            return try status(of: asked.request)
        }
        guard answer.isUnknownToApple else {
            throw ExtensionProblem.notOpen("Apple could not be asked: \(answer.failure ?? "")")
        }
        guard record.attempts >= 2 else {
            throw ExtensionProblem.tooEarly(try lastSent(asked).adding(settings.resendAfter))
        }
        guard let decision else { throw ExtensionProblem.needsDecision }
        try settle(asked, as: decision, by: actor, read: nil, note, standing)
        return try status(of: asked.request)
    }

    /// The requests that wait for an answer or a decision, the oldest first.
    public func unsettled() throws -> [UniqueID] {
        let rows = try reading.query(
            """
            select request_identifier from read_model.extension_record_live
            where is_open and outcome = 'unknown'
            order by at, request_identifier
            """
        )
        return (0..<rows.count).compactMap { rows.uuid($0, 0).map { UniqueID(bits: $0) } }
    }

    private func refresh(_ asked: ExtensionNote, through gateway: any ExtensionGateway) throws {
        do {
            if let transaction = asked[text: "transaction_id"] {
                try gateway.refreshTransaction(transaction, in: asked.app)
            } else {
                try gateway.refreshStatuses(of: asked.stream, in: asked.app)
            }
        } catch let error as EventLogError {
            throw error
        } catch {
            throw ExtensionProblem.notOpen("Apple could not be asked: \(error)")
        }
    }

    /// The end, as it is now, of the transaction that was to be extended; nil where it is not known.
    private func presentEnd(_ asked: ExtensionNote, _ standing: ExtensionStanding) -> Timestamp? {
        standing.history.charges.last {
            $0.transactionID.description == asked[text: "transaction_id"]
        }?.until
    }

    private func settle(
        _ asked: ExtensionNote,
        as resolution: ExtensionStep.Resolution,
        by actor: ExtensionActor,
        read end: Timestamp?,
        _ note: String?,
        _ standing: ExtensionStanding
    ) throws {
        var settled = step(.extensionResolved, of: asked)
        actor.sign(&settled)
        settled[text: "resolution"] = resolution == .extended ? "extended" : "not_extended"
        settled[instant: "expires_read"] = end
        settled[text: "note"] = note
        try append([settled], expecting: standing.positions)
    }

    /// When it was sent last.
    func lastSent(_ asked: ExtensionNote) throws -> Timestamp {
        let steps = try ExtensionNote.rows(
            isRequest: false,
            where: "n.stream = $1 and n.request_identifier = $2 order by n.position",
            [.text(asked.stream), .uuid(asked.request.bits)],
            reading
        )
        let sent = steps.map(\.note).filter {
            $0.kind == .extensionSubmitted || $0.kind == .massExtensionSubmitted
        }
        return sent.map(\.at).max() ?? asked.at
    }
}

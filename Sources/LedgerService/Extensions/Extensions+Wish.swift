internal import EventLog
public import Ledger
internal import Postgres

extension Extensions {
    /// Refuses a wish that is not whole, before anything is asked or written.
    func check(_ wish: ExtensionWish, _ actor: ExtensionActor) throws(ExtensionProblem) {
        guard ExtensionWish.daysRange.contains(wish.days) else {
            throw .unusable(field: "days", want: "1 to 90")
        }
        try check(wish.ticket, "ticket", 200)
        guard settings.accepts(ticket: wish.ticket) else {
            throw .unusable(
                field: "ticket",
                want: "a ticket looks like \(settings.ticketPattern ?? "")"
            )
        }
        if wish.reason.needsJustification, (wish.justification ?? "").isEmpty {
            throw .unusable(
                field: "note",
                want: "the reason \(wish.reason.name) says nothing, so a note must"
            )
        }
        if let note = wish.justification {
            try checkLines(note, "note", ExtensionWish.justificationMax)
        }
        let optional = [
            ("internal_reason", wish.internalReason, 200), ("ticket_url", wish.ticketURL, 1000),
            ("incident_id", wish.incident, 200), ("on_behalf_of", actor.onBehalfOf, 200),
            ("operator", actor.claimed, 200), ("Idempotency-Key", wish.idempotencyKey, 200),
        ]
        for (field, text, countMax) in optional {
            if let text { try check(text, field, countMax) }
        }
    }

    /// Refuses what is not one line.
    func check(_ text: String, _ field: String, _ countMax: Int) throws(ExtensionProblem) {
        guard OneLine.isOne(text, countMax: countMax) else {
            throw .unusable(field: field, want: OneLine.want(countMax))
        }
    }

    /// Refuses what is no text of one line or more.
    func checkLines(_ text: String, _ field: String, _ countMax: Int) throws(ExtensionProblem) {
        let isBlank = text.unicodeScalars.allSatisfy(\.properties.isWhitespace)
        let hasControl = text.unicodeScalars.contains { scalar in
            scalar.properties.generalCategory == .control && scalar != "\n"
        }
        guard !isBlank, !hasControl, text.count <= countMax else {
            throw .unusable(
                field: field,
                want: "1 to \(countMax) characters without control characters"
            )
        }
    }

    func find(_ wish: ExtensionWish) throws -> (SubscriptionKey, AppKey) {
        let reader = LogReader(reading)
        let apps = try reader.apps()
        let found = try reader.keys(ofStream: wish.subscription).compactMap { key in
            apps[key.appID].map { (key, $0) }
        }
        .filter { _, app in
            (wish.bundleID.map { $0 == app.bundleID } ?? true)
                && (wish.environment.map { $0 == app.environment } ?? true)
        }
        guard !wish.subscription.contains(":"), let first = found.first else {
            throw ExtensionProblem.unknownSubscription(wish.subscription)
        }
        guard found.count == 1 else { throw ExtensionProblem.ambiguous(wish.subscription) }
        return first
    }

    /// What the same request came to before, where its key was used already.
    ///
    /// A key is one's own. For one subscription it is used once all the same, so that somebody
    /// else's is another request than this one.
    func replay(
        _ wish: ExtensionWish,
        _ key: SubscriptionKey,
        _ actor: ExtensionActor
    ) throws -> ExtensionResult? {
        guard let idempotencyKey = wish.idempotencyKey else { return nil }
        let found = try ExtensionNote.rows(
            isRequest: true,
            where: """
                n.idempotency_key = $1
                    and (n.operator_authenticated = $2 or n.stream = $3 and n.app_id = $4)
                """,
            [
                .text(idempotencyKey), .text(actor.authenticated), .text(key.stream),
                .int(Int64(key.appID)),
            ],
            reading
        ).map(\.note)
        guard !found.isEmpty else { return nil }
        guard
            let note = found.first(where: {
                $0[text: "operator_authenticated"] == actor.authenticated
            }),
            note.stream == key.stream, note[int: "days"] == Int64(wish.days),
            note[int: "reason_code"] == Int64(wish.reason.rawValue),
            note[text: "ticket"] == wish.ticket,
            note[text: "justification"] == wish.justification
        else { throw ExtensionProblem.idempotencyMismatch }
        var result = try status(of: note.request)
        result.isRepeated = true
        return result
    }

    /// Writes what is wished and by whom into a request.
    func fill(_ note: inout ExtensionNote, _ wish: ExtensionWish, _ actor: ExtensionActor) {
        actor.sign(&note)
        note[int: "days"] = Int64(wish.days)
        note[int: "reason_code"] = Int64(wish.reason.rawValue)
        note[text: "ticket"] = wish.ticket
        note[text: "justification"] = wish.justification
        note[text: "internal_reason"] = wish.internalReason
        note[text: "ticket_system"] = settings.ticketSystem
        note[text: "ticket_url"] = wish.ticketURL
        note[text: "incident_id"] = wish.incident
        note[text: "service_identity"] = serviceIdentity
        note[text: "idempotency_key"] = wish.idempotencyKey
        note[bool: "again"] = wish.again
        note[bool: "attempt_ineligible"] = wish.attemptIneligible
    }

    /// What became of a request so far, from the log itself.
    public func status(of request: UniqueID) throws -> ExtensionResult {
        let (note, standing, record) = try read(request)
        var result = ExtensionResult(note, standing)
        result.outcome = record.outcome
        result.resolution = record.resolution
        result.attempts = Int(record.attempts)
        result.expiresAcked = record.expiresAcked
        result.expiresConfirmed = record.expiresConfirmed
        for (_, step) in try ExtensionNote.rows(
            isRequest: false,
            where: "n.stream = $1 and n.request_identifier = $2 order by n.position",
            [.text(note.stream), .uuid(request.bits)],
            reading
        ) {
            result.note(step)
        }
        if record.rejected != nil { result.rule = "rejected" }
        return result
    }

    /// A request with its subscription and what became of it.
    func read(
        _ request: UniqueID
    ) throws -> (ExtensionNote, ExtensionStanding, ExtensionRecord) {
        guard let (_, note) = try ExtensionNote.request(request, reading) else {
            throw ExtensionProblem.unknownRequest(request.description)
        }
        let apps = try LogReader(reading).apps()
        guard let app = apps.first(where: { $0.value == note.app }) else {
            throw ExtensionProblem.unknownRequest(request.description)
        }
        let key = SubscriptionKey(appID: app.key, stream: note.stream)
        let standing = try ExtensionStanding(
            key,
            note.app,
            at: now(),
            apartFrom: request,
            reading
        )
        guard let record = standing.history.extensions.first(where: { $0.request == request })
        else { throw ExtensionProblem.unknownRequest(request.description) }
        return (note, standing, record)
    }
}

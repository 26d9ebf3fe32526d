internal import AppStore
internal import EventLog
internal import HTTP
internal import Ledger
internal import Postgres

/// Extensions over HTTP: an operator's token asks and approves, an auditor's reads.
extension Service {
    /// The longest body of a request to extend.
    static let extensionBodyMaxBytes = 16 * 1024

    /// `POST /v1/extensions`: asks for an extension of one subscription.
    func requestExtension(_ request: HTTPRequest, _ actor: ExtensionActor) throws -> Answer {
        let body = try RequestBody(
            request,
            allowing: [
                "original_transaction_id", "bundle_id", "environment", "days", "reason", "ticket",
                "note", "internal_reason", "ticket_url", "incident_id", "on_behalf_of", "again",
                "attempt_ineligible", "without_fresh_status", "dry_run",
            ]
        )
        var wish = try Self.wish(
            body,
            subscription: try Parameters.stream(
                try body.needed("original_transaction_id"),
                "original_transaction_id"
            ),
            request
        )
        wish.bundleID = try body.text("bundle_id")
        // Test purchases are never extended by mistake for real ones.
        wish.environment = try body.text("environment").map(Self.environment) ?? .production
        wish.again = try body.bool("again") ?? false
        wish.attemptIneligible = try body.bool("attempt_ineligible") ?? false
        wish.withoutFreshStatus = try body.bool("without_fresh_status") ?? false
        var actor = actor
        actor.onBehalfOf = try body.text("on_behalf_of")
        return atTheDesk { [wish, actor] in try $0.request(wish, by: actor) }
    }

    /// What is wished alike for one subscription and for a whole product.
    static func wish(
        _ body: RequestBody,
        subscription: String,
        _ request: HTTPRequest
    ) throws(ServiceProblem) -> ExtensionWish {
        var wish = ExtensionWish(
            subscription: subscription,
            days: Int(try body.integer("days", in: 1...90)),
            reason: try reason(body),
            ticket: try body.needed("ticket")
        )
        wish.justification = try body.text("note")
        wish.internalReason = try body.text("internal_reason")
        wish.ticketURL = try body.text("ticket_url")
        wish.incident = try body.text("incident_id")
        wish.isDryRun = try body.bool("dry_run") ?? false
        guard let key = request.headers["Idempotency-Key"], !key.isEmpty else {
            throw .parameter(
                "Idempotency-Key",
                "a header with a value of its own for each request that is meant"
            )
        }
        wish.idempotencyKey = key
        return wish
    }

    /// `POST /v1/extensions/{request}/decision`: approves or rejects what another asked for.
    func decideExtension(_ request: HTTPRequest, _ actor: ExtensionActor) throws -> Answer {
        let id = try Self.requestIdentifier(request)
        let body = try RequestBody(request, allowing: ["decision", "note"])
        let note = try body.text("note")
        switch try body.needed("decision") {
        case "approve": return atTheDesk { try $0.approve(id, by: actor, note: note) }
        case "reject": return atTheDesk { try $0.reject(id, by: actor, note: note) }
        default: throw ServiceProblem.parameter("decision", "approve or reject")
        }
    }

    /// `POST /v1/extensions/{request}/resolution`: settles a request whose answer was lost.
    func resolveExtension(_ request: HTTPRequest, _ actor: ExtensionActor) throws -> Answer {
        let id = try Self.requestIdentifier(request)
        let body = try RequestBody(request, allowing: ["decision", "note"])
        let note = try body.text("note")
        let decision: ExtensionStep.Resolution?
        switch try body.text("decision") {
        case nil: decision = nil
        case "extended"?: decision = .extended
        case "not-extended"?: decision = .notExtended
        default: throw ServiceProblem.parameter("decision", "extended or not-extended")
        }
        return atTheDesk {
            try $0.resolve(id, by: actor, decision: decision, note: note)
        }
    }

    /// `GET /v1/extensions`: the audit, for an auditor.
    func extensionAudit(_ request: HTTPRequest, _ actor: ExtensionActor) throws -> Answer {
        let parameters = try Parameters(
            request,
            allowing: [
                "operator", "ticket", "reason", "from", "to", "outcome", "subscription",
                "environment", "cursor", "limit", "format",
            ]
        )
        let form = try Representation(request, parameters)
        var query = ExtensionQuery()
        query.operatorName = try parameters.shortText("operator")
        query.ticket = try parameters.shortText("ticket")
        if let name = parameters.text("reason") {
            guard let reason = ExtensionReason(name: name) else {
                let names = ExtensionReason.allCases.map(\.name).joined(separator: ", ")
                throw ServiceProblem.parameter("reason", "one of \(names)")
            }
            query.reason = reason
        }
        query.since = try parameters.instant("from")
        query.until = try parameters.instant("to")
        query.outcome = try parameters.word("outcome", ExtensionRecord.Outcome.self)
        query.subscription = try parameters.stream("subscription")
        query.environment = try parameters.environment()
        let limit = Int(
            try parameters.integer("limit", in: 1...PageWish.limitMax) ?? PageWish.limitDefault
        )
        var place: ExtensionQuery.Place?
        if let text = parameters.text("cursor") {
            place = ExtensionQuery.Place(text, of: parameters.list)
            guard place != nil else { throw ServiceProblem.foreignCursor }
        }
        return auditors.answer { [self, query, place, list = parameters.list] connection in
            let found = try query.rows(after: place, limit: limit + 1, connection)
            let page = found.prefix(limit)
            // Who reads who did what is on record too.
            try RecordedRows.recordExport(
                of: "extensions",
                filter: request.target.query.map { "\($0.name)=\($0.value)" }
                    .joined(separator: "&"),
                by: actor,
                now: now(),
                connection,
                through: Appender(appendingSession())
            )
            feed.wake()
            let next = found.count > limit ? page.last?.place.text(of: list) : nil
            if form == .csv {
                var table = CSVTable(ExtensionAuditRow.names)
                for row in page { table.add(row.fields) }
                return table.response(next: next)
            }
            var json = JSONWriter()
            json.beginObject()
            json.key("extensions")
            json.beginArray()
            for row in page { row.write(to: &json) }
            json.endArray()
            json.member("next_cursor", next)
            json.endObject()
            var response = HTTPResponse.json(json.text)
            response.headers["Vary"] = "Accept"
            return response
        }
    }

    // MARK: - The desk

    /// Has something done about an extension, on a thread that may wait for Apple.
    func atTheDesk(
        _ work: @escaping @Sendable (Extensions) throws -> ExtensionResult
    ) -> Answer {
        desk.answer { [self] connection in
            do {
                let result = try work(desk(over: connection))
                projection.wake()
                feed.wake()
                var json = JSONWriter()
                result.write(to: &json)
                return .json(json.text, status: Self.status(of: result))
            } catch let problem as ExtensionProblem {
                // That somebody tried to approve their own is news too.
                projection.wake()
                feed.wake()
                throw Self.problem(problem)
            }
        }
    }

    /// What does extensions.
    func desk(over connection: Connection) throws -> Extensions {
        let extensions = try Extensions(
            reading: connection,
            appending: appendingSession(),
            gateway: options.extensionGateway,
            settings: options.extensions,
            now: now
        )
        extensions.serviceIdentity = "subledger \(options.version)"
        return extensions
    }

    /// 201 for what was extended, 202 for what is not settled, 409 for what was refused.
    private static func status(of result: ExtensionResult) -> Int {
        if result.isDryRun { return 200 }
        switch result.outcome {
        // Apple works on a whole product for hours.
        case .accepted where result.subscription.hasPrefix("mass:"): return 202
        case .accepted, .confirmed, .contradicted, .external:
            return result.isRepeated ? 200 : 201
        case .requested, .unknown: return 202
        case .refusedLocally, .refusedByApple: return 409
        }
    }

    static func problem(_ problem: ExtensionProblem) -> ServiceProblem {
        switch problem {
        case .unusable(let field, let want): .parameter(field, want)
        case .unknownSubscription, .unknownRequest: .notFound("\(problem)")
        case .ambiguous: .parameter("bundle_id", "\(problem)")
        case .idempotencyMismatch: .idempotencyMismatch
        case .selfApproval: .selfApproval
        case .notOpen, .changed, .needsDecision, .movedOtherwise, .tooEarly:
            .notOpen("\(problem)")
        case .noGateway: .appStoreUnavailable("\(problem)")
        }
    }

    private static func reason(_ body: RequestBody) throws(ServiceProblem) -> ExtensionReason {
        guard let reason = ExtensionReason(name: try body.needed("reason")) else {
            let names = ExtensionReason.allCases.map(\.name).joined(separator: ", ")
            throw .parameter("reason", "one of \(names)")
        }
        return reason
    }

    static func environment(_ text: String) throws(ServiceProblem) -> Environment {
        switch text {
        case "Production": .production
        case "Sandbox": .sandbox
        default: throw .parameter("environment", "Production or Sandbox")
        }
    }

    static func requestIdentifier(
        _ request: HTTPRequest
    ) throws(ServiceProblem) -> UniqueID {
        guard let id = UniqueID(request.parameter("request")) else {
            throw .parameter("request", "the UUID that the request was answered with")
        }
        return id
    }
}

/// A request's JSON object, of which every member must be known and have the right type.
struct RequestBody {
    private let document: JSONDocument

    init(_ request: HTTPRequest, allowing names: [String]) throws(ServiceProblem) {
        do { document = try JSONDocument(request.body) } catch {
            throw .parameter("body", "a JSON object: \(error.message)")
        }
        guard document.root.kind == .object else { throw .parameter("body", "a JSON object") }
        for member in document.root.members where !names.contains(member.name) {
            throw .parameter("body", "known members are \(names.joined(separator: ", "))")
        }
    }

    func text(_ name: String) throws(ServiceProblem) -> String? {
        guard let value = document[name], !value.isNull else { return nil }
        guard let text = value.text, !text.utf8.contains(0) else {
            throw .parameter(name, "a text without a zero byte")
        }
        return text
    }

    func needed(_ name: String) throws(ServiceProblem) -> String {
        guard let text = try text(name), !text.isEmpty else { throw .parameter(name, "is missing") }
        return text
    }

    func texts(_ name: String) throws(ServiceProblem) -> [String]? {
        guard let value = document[name], !value.isNull else { return nil }
        let texts = value.elements.compactMap(\.text)
        guard value.kind == .array, texts.count == value.elements.count,
            texts.allSatisfy({ !$0.utf8.contains(0) })
        else { throw .parameter(name, "an array of texts") }
        return texts
    }

    func bool(_ name: String) throws(ServiceProblem) -> Bool? {
        guard let value = document[name], !value.isNull else { return nil }
        guard let bool = value.bool else { throw .parameter(name, "true or false") }
        return bool
    }

    func integer(_ name: String, in range: ClosedRange<Int64>) throws(ServiceProblem) -> Int64 {
        let want = "a whole number from \(range.lowerBound) to \(range.upperBound)"
        guard let value = document[name], let number = try? value.int64(), range.contains(number)
        else { throw .parameter(name, want) }
        return number
    }
}

extension Parameters {
    /// A text that is looked for.
    fileprivate func shortText(_ name: String) throws(ServiceProblem) -> String? {
        guard let text = text(name) else { return nil }
        guard text.utf8.count <= 400, !text.utf8.contains(0), !text.isEmpty else {
            throw .parameter(name, "1 to 400 bytes without a zero byte")
        }
        return text
    }
}

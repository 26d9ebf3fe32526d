internal import Crypto
internal import EventLog
internal import HTTP
internal import Ledger
internal import Postgres

/// The questions about the log: what was received, and how it came to what is shown.
extension Service {
    /// How many events with their evidence an answer may have: 20 kB each are usual.
    private static let evidenceMax: Int64 = 100

    /// `GET /v1/subscriptions/{id}/explanation`: the timeline and the events behind it.
    func explanation(_ request: HTTPRequest, for role: APIToken.Role) throws -> Answer {
        let parameters = try Parameters(
            request,
            allowing: ["environment", "at", "known_at", "known_at_position"]
        )
        let id = try Parameters.stream(request.parameter("id"), "id")
        let environment = try parameters.environment()
        let at = try parameters.instant("at")
        let knowledge = try parameters.knowledge()
        return auditors.answer { connection in
            let all = try Self.known {
                try Explanation.explanations(of: id, at: at, known: knowledge, connection)
            }
            let found = all.filter { $0.app.environment == environment }
            guard !found.isEmpty else {
                throw ServiceProblem.notFound("no such subscription in \(environment)")
            }
            let rows = found.reduce(0) { $0 + $1.events.count + $1.timeline.count }
            guard rows <= Self.rowsMax else {
                throw ServiceProblem.tooLarge("/v1/subscriptions/{id}/events has pages")
            }
            var json = JSONWriter()
            json.beginObject()
            json.key("explanations")
            json.beginArray()
            for var explanation in found {
                explanation.events = explanation.events.map { $0.shown(to: role) }
                explanation.write(to: &json)
            }
            json.endArray()
            json.endObject()
            return .json(json.text)
        }
    }

    /// `GET /v1/subscriptions/{id}/events`: what the log holds of a subscription.
    func subscriptionEvents(
        _ request: HTTPRequest,
        for role: APIToken.Role
    ) throws -> Answer {
        let parameters = try Parameters(
            request,
            allowing: [
                "environment", "after", "epoch", "limit", "known_at", "known_at_position",
            ]
        )
        let id = try Parameters.stream(request.parameter("id"), "id")
        let environment = try parameters.environment()
        let place = try LogPlace(parameters)
        let limit = Int(try parameters.integer("limit", in: 1...PageWish.limitMax) ?? 100)
        let knowledge = try parameters.knowledge()
        return auditors.answer { connection in
            let epoch = try place.epoch(EpochBook(connection).all())
            if place.after > 0 { try place.check(notBeyond: LogReader(connection).head().position) }
            let known = try Self.known {
                try knowledge.map { try LogPrefix($0, connection).position } ?? .max
            }
            let found = try EventQuery(stream: id).streams(connection)
                .filter { $0.app.environment == environment }
            guard !found.isEmpty else {
                throw ServiceProblem.notFound("no such subscription in \(environment)")
            }
            var apps: [Int32: AppKey] = [:]
            for stream in found {
                for event in stream.events { apps[event.key.appID] = stream.app }
            }
            let events = found.flatMap(\.events).filter {
                $0.position > place.after && $0.position <= known
            }
            .sorted { $0.position < $1.position }
            let shown = events.prefix(limit).map { ($0.shown(to: role), StoredEvidence?.none) }
            return Self.page(shown, apps, after: place, epoch)
        }
    }

    /// `GET /v1/events/{position}/evidence`: what was received, byte for byte.
    func evidence(_ request: HTTPRequest) throws -> Answer {
        _ = try Parameters(request, allowing: [])
        guard let position = Int64(request.parameter("position")), position > 0 else {
            throw ServiceProblem.parameter("position", "a whole number from 1 on")
        }
        return auditors.answer { connection in
            guard let evidence = try EventQuery.evidence(at: position, connection) else {
                throw ServiceProblem.notFound("no event at \(position)")
            }
            return HTTPResponse(
                status: 200,
                contentType: evidence.form == .jws ? "application/jose" : "application/json",
                headers: ["Cache-Control": "private, max-age=31536000, immutable"],
                body: evidence.received
            )
        }
    }

    private enum Inclusion: String, CaseIterable {
        case evidence
    }

    /// `GET /v1/events`: what was appended after a position, in commit order.
    func events(_ request: HTTPRequest, for role: APIToken.Role) throws -> Answer {
        let parameters = try Parameters(
            request,
            allowing: ["after", "epoch", "limit", "wait_ms", "include"]
        )
        let place = try LogPlace(parameters)
        let hasEvidence = try parameters.word("include", Inclusion.self) != nil
        let most = hasEvidence ? Self.evidenceMax : PageWish.limitMax
        let limit = Int(try parameters.integer("limit", in: 1...most) ?? 100)
        let waitMs = try parameters.integer("wait_ms", in: 0...30_000) ?? 0
        guard !hasEvidence || role == .auditor else {
            throw ServiceProblem.forbidden("auditor, for evidence")
        }
        let read: @Sendable (Connection) throws -> HTTPResponse = { connection in
            let epoch = try place.epoch(EpochBook(connection).all())
            let reader = LogReader(connection)
            let apps = try reader.apps()
            let events = try reader.events(after: place.after, limit: limit).map { event in
                (event.shown(to: role), hasEvidence ? try reader.evidence(of: event) : nil)
            }
            if events.isEmpty, place.after > 0 {
                try place.check(notBeyond: reader.head().position)
            }
            return Self.page(events, apps, after: place, epoch)
        }
        guard waitMs > 0 else { return auditors.answer(read) }
        return feed.wait(
            beyond: place.after,
            of: place.epoch,
            within: .milliseconds(waitMs),
            empty: { epoch in
                guard let epoch = place.epoch ?? epoch else {
                    return .problem(ServiceProblem.databaseUnavailable.problem).retrying(after: 5)
                }
                return Self.page([], [:], after: place, epoch)
            },
            read: read
        )
    }

    private static func page(
        _ events: [(StoredEvent, StoredEvidence?)],
        _ apps: [Int32: AppKey],
        after place: LogPlace,
        _ epoch: Int64
    ) -> HTTPResponse {
        var json = JSONWriter()
        json.beginObject()
        json.key("events")
        json.beginArray()
        for (event, evidence) in events {
            json.beginObject()
            let app = apps[event.key.appID]
            json.member("environment", app?.environment.description)
            json.member("bundle_id", app?.bundleID)
            event.writeMembers(to: &json)
            if let evidence {
                // What is not signed may be any bytes.
                switch evidence.form {
                case .jws:
                    json.member(
                        "signed_payload",
                        String(decoding: evidence.received, as: UTF8.self)
                    )
                case .raw, .response:
                    json.member("received_base64", Base64.encode(evidence.received))
                }
            }
            json.endObject()
        }
        json.endArray()
        json.member("next_after", events.last?.0.position ?? place.after)
        json.member("epoch", epoch)
        json.endObject()
        return .json(json.text)
    }
}

extension StoredEvent {
    /// The event as a role may see it: who did what on which ticket is not for readers.
    fileprivate func shown(to role: APIToken.Role) -> StoredEvent {
        guard role == .reader else { return self }
        var event = self
        event.operator = nil
        event.ticket = nil
        return event
    }
}

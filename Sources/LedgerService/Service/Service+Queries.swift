internal import EventLog
internal import HTTP
internal import Ledger
internal import Postgres

/// The questions about read models. Each only looks up what was folded before.
extension Service {
    /// How many rows an answer may have at most.
    private static let rowsMax: Int64 = 10_000

    /// `GET /v1/entitlements`: who has access to what at an instant.
    func entitlements(_ request: HTTPRequest) throws -> Answer {
        let parameters = try Parameters(
            request,
            allowing: ["owner", "subscription", "environment", "at", "after", "wait_ms"]
        )
        var query = EntitlementQuery(at: try parameters.instant("at") ?? now())
        query.owner = try parameters.owner("owner")
        query.subscription = try parameters.stream("subscription")
        query.environment = try parameters.environment()
        guard query.owner != nil || query.subscription != nil else {
            throw ServiceProblem.parameter("owner", "owner or subscription must be named")
        }
        let asked = query
        return try waiting(for: parameters) { connection in
            var json = JSONWriter()
            json.beginObject()
            json.member("at", asked.at)
            json.key("entitlements")
            json.beginArray()
            for answer in try asked.answers(connection) { answer.write(to: &json) }
            json.endArray()
            json.endObject()
            return .json(json.text)
        }
    }

    /// Answers once the read models show a position, where one is asked for.
    private func waiting(
        for parameters: Parameters,
        _ read: @escaping @Sendable (Connection) throws -> HTTPResponse
    ) throws -> Answer {
        guard let position = try parameters.integer("after", in: 0...Int64.max) else {
            return readers.answer(read)
        }
        let waitMs = try parameters.integer("wait_ms", in: 0...30_000) ?? 5000
        let deadline = ContinuousClock.now + .milliseconds(waitMs)
        return readers.answer { connection in
            // A projector needs milliseconds; each look takes less than one.
            while try !Self.shows(position, connection) {
                guard ContinuousClock.now < deadline else {
                    throw ServiceProblem.behind(position)
                }
                Sleep.milliseconds(5)
            }
            return try read(connection)
        }
    }

    /// Whether everything up to a position is in the log and folded.
    private static func shows(_ position: Int64, _ connection: Connection) throws -> Bool {
        let rows = try connection.query(
            """
            select (select position from ledger.head) >= $1
                and not exists (select from ledger.mark where position <= $1)
            """,
            [.int(position)]
        )
        return rows.bool(0, 0) ?? false
    }

    /// `GET /v1/billing-recovery`: whose payment has failed and is not recovered yet.
    func billingRecovery(_ request: HTTPRequest) throws -> Answer {
        let parameters = try Parameters(request, allowing: ["owner", "environment", "at"])
        let query = BillingRecoveryQuery(
            at: try parameters.instant("at") ?? now(),
            environment: try parameters.environment(),
            owner: try parameters.owner("owner")
        )
        return readers.answer { connection in
            var json = JSONWriter()
            json.beginObject()
            json.member("at", query.at)
            json.key("billing_recovery")
            json.beginArray()
            try query.forEach(connection) { $0.write(to: &json) }
            json.endArray()
            json.endObject()
            return .json(json.text)
        }
    }

    /// `GET /v1/churn`: who came, stayed and left, and what it was worth.
    func churn(_ request: HTTPRequest) throws -> Answer {
        let parameters = try Parameters(
            request,
            allowing: ["from", "to", "by", "zone", "environment", "as_of", "currency"]
        )
        let query = ChurnQuery(
            since: try parameters.day("from"),
            until: try parameters.day("to"),
            grouping: try parameters.word("by", ChurnQuery.Grouping.self) ?? .month,
            zone: parameters.text("zone") ?? "UTC",
            environment: try parameters.environment(),
            asOf: try parameters.instant("as_of") ?? now(),
            currency: parameters.text("currency")
        )
        guard query.since < query.until else {
            throw ServiceProblem.parameter("to", "the first day after the last, later than from")
        }
        for (name, text) in [("zone", query.zone), ("currency", query.currency ?? "")]
        where text.utf8.contains(0) || text.utf8.count > 60 {
            throw ServiceProblem.parameter(name, "at most 60 bytes without a zero byte")
        }
        return readers.answer { connection in
            do {
                var json = JSONWriter()
                json.beginObject()
                json.key("subscribers")
                try query.subscribers(connection).write(to: &json)
                if query.grouping != .cause {
                    json.key("mrr")
                    try query.value(connection).write(to: &json)
                }
                json.endObject()
                return .json(json.text)
            } catch let error as ReadModelError {
                // What the database says of a zone, a day or a rate is about the question.
                if error.sqlState == "P0002" {
                    throw ServiceProblem.parameter("currency", "an exchange rate is missing")
                }
                guard error.sqlState?.hasPrefix("22") == true else { throw error }
                throw ServiceProblem.parameter("zone", "the zone or a day does not exist")
            }
        }
    }

    // MARK: - The log

    /// `GET /v1/subscriptions/{id}/explanation`: the timeline and the events behind it.
    func explanation(_ request: HTTPRequest) throws -> Answer {
        let parameters = try Parameters(request, allowing: ["environment", "at"])
        let id = try Parameters.stream(request.parameter("id"), "id")
        let environment = try parameters.environment()
        let at = try parameters.instant("at")
        return auditors.answer { connection in
            let found = try Explanation.explanations(of: id, at: at, connection)
                .filter { $0.app.environment == environment }
            guard !found.isEmpty else {
                throw ServiceProblem.notFound("no such subscription in \(environment)")
            }
            var json = JSONWriter()
            json.beginObject()
            json.key("explanations")
            json.beginArray()
            for explanation in found { explanation.write(to: &json) }
            json.endArray()
            json.endObject()
            return .json(json.text)
        }
    }

    /// `GET /v1/subscriptions/{id}/events`: what the log holds of a subscription.
    func subscriptionEvents(_ request: HTTPRequest) throws -> Answer {
        let parameters = try Parameters(request, allowing: ["environment"])
        let id = try Parameters.stream(request.parameter("id"), "id")
        let environment = try parameters.environment()
        return auditors.answer { connection in
            let found = try EventQuery(stream: id).streams(connection)
                .filter { $0.app.environment == environment }
            guard !found.isEmpty else {
                throw ServiceProblem.notFound("no such subscription in \(environment)")
            }
            var json = JSONWriter()
            json.beginObject()
            json.key("events")
            json.beginArray()
            for stream in found { stream.write(to: &json) }
            json.endArray()
            json.endObject()
            return .json(json.text)
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

    /// `GET /v1/events`: what was appended after a position, in commit order.
    func events(_ request: HTTPRequest) throws -> Answer {
        let parameters = try Parameters(request, allowing: ["after", "limit", "wait_ms"])
        let after = try parameters.integer("after", in: 0...Int64.max) ?? 0
        let limit = Int(try parameters.integer("limit", in: 1...1000) ?? 100)
        let waitMs = try parameters.integer("wait_ms", in: 0...30_000) ?? 0
        let read: @Sendable (Connection) throws -> HTTPResponse = { connection in
            let reader = LogReader(connection)
            let apps = try reader.apps()
            return Self.page(try reader.events(after: after, limit: limit), apps, after: after)
        }
        guard waitMs > 0 else { return auditors.answer(read) }
        return feed.wait(
            beyond: after,
            within: .milliseconds(waitMs),
            empty: Self.page([], [:], after: after),
            read: read
        )
    }

    private static func page(
        _ events: [StoredEvent],
        _ apps: [Int32: AppKey],
        after: Int64
    ) -> HTTPResponse {
        var json = JSONWriter()
        json.beginObject()
        json.key("events")
        json.beginArray()
        for event in events {
            json.beginObject()
            let app = apps[event.key.appID]
            json.member("environment", app?.environment.description)
            json.member("bundle_id", app?.bundleID)
            event.writeMembers(to: &json)
            json.endObject()
        }
        json.endArray()
        json.member("next_after", events.last?.position ?? after)
        json.endObject()
        return .json(json.text)
    }
}

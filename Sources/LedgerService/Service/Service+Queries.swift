internal import Dispatch
internal import EventLog
internal import HTTP
internal import Ledger
internal import Postgres
internal import Synchronization

/// The questions about read models. Each only looks up what was folded before.
extension Service {
    /// How many rows an answer without pages may have.
    static let rowsMax = 10_000
    /// How many days churn may be asked for at once.
    private static let churnDaysMax: Int64 = 3660

    /// `GET /v1/entitlements`: who has access to what at an instant.
    func entitlements(_ request: HTTPRequest) throws -> Answer {
        let parameters = try Parameters(
            request,
            allowing: [
                "owner", "subscription", "product", "environment", "at", "known_at",
                "known_at_position", "after", "wait_ms", "cursor", "limit",
            ]
        )
        let wish = try PageWish(parameters, now: now())
        var query = EntitlementQuery(at: wish.at)
        query.owner = try parameters.owner("owner")
        query.subscription = try parameters.stream("subscription")
        query.product = try parameters.stream("product")
        query.environment = try parameters.environment()
        guard query.owner != nil || query.subscription != nil || query.product != nil else {
            throw ServiceProblem.parameter("owner", "owner, subscription or product must be named")
        }
        let asked = query
        if let knowledge = try parameters.knowledge() {
            return try answer(asked, wish, known: knowledge, parameters, request)
        }
        return try waiting(for: parameters) { connection in
            let found = try asked.answers(after: wish.last, limit: wish.limit + 1, connection)
            return Self.response(wish, found, to: request)
        }
    }

    /// Answers what was known; it takes the log, which readers' sessions may not read.
    private func answer(
        _ query: EntitlementQuery,
        _ wish: PageWish,
        known knowledge: Knowledge,
        _ parameters: Parameters,
        _ request: HTTPRequest
    ) throws -> Answer {
        guard query.owner != nil || query.subscription != nil else {
            throw ServiceProblem.parameter("owner", "owner or subscription goes with known_at")
        }
        for name in ["after", "wait_ms"] where parameters.text(name) != nil {
            throw ServiceProblem.parameter(name, "waits for what is new; not with known_at")
        }
        return auditors.answer { connection in
            let known = try Self.known { try query.known(knowledge, connection) }
            let found = known.answers.filter { answer in wish.last.map { $0 < answer.key } ?? true }
            return Self.response(wish, found, known: known.prefix, to: request)
        }
    }

    /// What `body` gives; a position that the log has not come to is the question's fault.
    static func known<Value>(_ body: () throws -> Value) throws -> Value {
        do {
            return try body()
        } catch let error as ReadModelError where error.code == .notKnown {
            throw ServiceProblem.parameter("known_at_position", error.message)
        }
    }

    private static func response(
        _ wish: PageWish,
        _ found: [EntitlementAnswer],
        known: LogPrefix? = nil,
        to request: HTTPRequest
    ) -> HTTPResponse {
        let (answers, next) = wish.page(of: found, \.key)
        var rows = JSONWriter()
        rows.beginArray()
        for answer in answers { answer.write(to: &rows) }
        rows.endArray()
        // The cursor that a client would keep with pages of "now" would be of another moment.
        let tag = wish.isAtGiven || next == nil ? EntityTag.of(rows.bytes) : nil
        if let tag, EntityTag.isKnown(tag, to: request) {
            return HTTPResponse(status: 304, headers: ["ETag": tag, "Cache-Control": caching])
        }
        var json = JSONWriter()
        json.beginObject()
        json.member("at", wish.at)
        known?.writeMembers(to: &json)
        json.key("entitlements")
        json.raw(rows.bytes)
        json.member("next_cursor", next)
        json.endObject()
        var response = HTTPResponse.json(json.text)
        response.headers["Cache-Control"] = caching
        if let tag { response.headers["ETag"] = tag }
        return response
    }

    /// Who keeps an answer asks each time whether it still holds.
    private static let caching = "private, no-cache"

    /// Answers once the read models show a position, where one is asked for.
    private func waiting(
        for parameters: Parameters,
        _ read: @escaping @Sendable (Connection) throws -> HTTPResponse
    ) throws -> Answer {
        guard let position = try parameters.integer("after", in: 0...Int64.max) else {
            return readers.answer(read)
        }
        let waitMs = try parameters.integer("wait_ms", in: 0...30_000) ?? 5000
        guard let place = waits.place() else { throw ServiceProblem.busy }
        let pending = PendingResponse()
        let deadline = ContinuousClock.now + .milliseconds(waitMs)
        answer(pending, when: position, before: deadline, pauseMilliseconds: 4) { connection in
            try withExtendedLifetime(place) { try read(connection) }
        }
        return .later(pending)
    }

    /// Looks, and looks again after a pause in which no thread is held: who waits for what will
    /// never come keeps nobody else from being answered.
    private func answer(
        _ pending: PendingResponse,
        when position: Int64,
        before deadline: ContinuousClock.Instant,
        pauseMilliseconds pause: Int,
        _ read: @escaping @Sendable (Connection) throws -> HTTPResponse
    ) {
        readers.complete(pending) { [self] connection in
            if try shows(position, connection) { return try read(connection) }
            guard ContinuousClock.now < deadline else { throw ServiceProblem.behind(position) }
            DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(pause)) {
                // A projector needs milliseconds; what takes longer need not be seen at once.
                let next = min(pause * 2, 128)
                self.answer(
                    pending,
                    when: position,
                    before: deadline,
                    pauseMilliseconds: next,
                    read
                )
            }
            return nil
        }
    }

    /// Whether everything up to a position is in the log and folded.
    ///
    /// What was shown before is not looked at again: where an old snapshot is open, going over the
    /// marks that were there would take ever longer.
    private func shows(_ position: Int64, _ connection: Connection) throws -> Bool {
        let known = shownPosition.load(ordering: .relaxed)
        guard position > known else { return true }
        let rows = try connection.query(
            """
            select (select position from ledger.head) >= $2
                and not exists (select from ledger.mark where position > $1 and position <= $2)
            """,
            [.int(known), .int(position)]
        )
        guard rows.bool(0, 0) == true else { return false }
        shownPosition.max(position, ordering: .relaxed)
        return true
    }

    /// `GET /v1/billing-recovery`: whose payment has failed and is not recovered yet.
    func billingRecovery(_ request: HTTPRequest) throws -> Answer {
        let parameters = try Parameters(
            request,
            allowing: ["owner", "environment", "at", "cursor", "limit", "format"]
        )
        let form = try Representation(request, parameters)
        let wish = try PageWish(parameters, now: now())
        let query = BillingRecoveryQuery(
            at: wish.at,
            environment: try parameters.environment(),
            owner: try parameters.owner("owner")
        )
        return readers.answer { connection in
            let found = try query.answers(after: wish.last, limit: wish.limit + 1, connection)
            let (troubles, next) = wish.page(of: found, \.key)
            if form == .csv {
                var table = CSVTable(BillingTrouble.fieldNames)
                for trouble in troubles { table.add(trouble.fields) }
                return table.response(next: next)
            }
            var json = JSONWriter()
            json.beginObject()
            json.member("at", query.at)
            json.key("billing_recovery")
            json.beginArray()
            for trouble in troubles { trouble.write(to: &json) }
            json.endArray()
            json.member("next_cursor", next)
            json.endObject()
            return .json(json.text).varying
        }
    }

    /// `GET /v1/churn`: who came, stayed and left, and what it was worth.
    func churn(_ request: HTTPRequest) throws -> Answer {
        let parameters = try Parameters(
            request,
            allowing: [
                "from", "to", "by", "zone", "environment", "as_of", "currency", "table", "format",
            ]
        )
        let form = try Representation(request, parameters)
        let query = ChurnQuery(
            since: try parameters.day("from"),
            until: try parameters.day("to"),
            grouping: try parameters.word("by", ChurnQuery.Grouping.self) ?? .month,
            zone: parameters.text("zone") ?? "UTC",
            environment: try parameters.environment(),
            asOf: try parameters.instant("as_of") ?? now(),
            currency: parameters.text("currency")
        )
        try Self.check(query)
        let named = try parameters.word("table", ChurnTable.self)
        if named == .mrr, query.grouping == .cause {
            throw ServiceProblem.parameter("table", "by=cause has subscribers only")
        }
        // A file has one table.
        let wanted = named ?? (form == .csv ? .subscribers : nil)
        return readers.answer { connection in
            do {
                var json = JSONWriter()
                json.beginObject()
                for table in ChurnTable.allCases where wanted ?? table == table {
                    if table == .mrr, query.grouping == .cause { continue }
                    let answer =
                        table == .mrr
                        ? try query.value(connection) : try query.subscribers(connection)
                    guard answer.rows.count <= Self.rowsMax else {
                        throw ServiceProblem.tooLarge("ask for fewer months, from to")
                    }
                    if form == .csv {
                        var file = CSVTable(answer.names)
                        for row in answer.rows { file.add(row) }
                        return file.response()
                    }
                    json.key(table.rawValue)
                    answer.write(to: &json)
                }
                json.endObject()
                return .json(json.text).varying
            } catch let error as ReadModelError {
                // What the database says of a zone, a day or a rate is about the question.
                if error.sqlState == "P0002" {
                    throw ServiceProblem.parameter("currency", "an exchange rate is missing")
                }
                guard error.sqlState?.hasPrefix("22") == true else { throw error }
                throw ServiceProblem.parameter(
                    "zone",
                    "the zone or a day does not exist; a zone is a name such as Europe/Berlin"
                )
            }
        }
    }

    /// What an answer about churn consists of.
    private enum ChurnTable: String, CaseIterable {
        case subscribers
        case mrr
    }

    private static func check(_ query: ChurnQuery) throws(ServiceProblem) {
        let days = [query.since, query.until].compactMap { Timestamp(parsing: $0)?.milliseconds }
        guard days.count == 2, days[0] < days[1] else {
            throw .parameter("to", "the first day after the last, later than from")
        }
        guard days[1] - days[0] <= churnDaysMax * 86_400_000 else {
            throw .parameter("to", "at most \(churnDaysMax) days after from")
        }
        for (name, text) in [("zone", query.zone), ("currency", query.currency ?? "")]
        where text.utf8.contains(0) || text.utf8.count > 60 {
            throw .parameter(name, "at most 60 bytes without a zero byte")
        }
    }
}

extension HTTPResponse {
    /// The same answer, which another `Accept` would have made another.
    fileprivate var varying: HTTPResponse {
        var response = self
        response.headers["Vary"] = "Accept"
        return response
    }
}

extension BillingTrouble {
    /// The names of the fields of a table's row.
    fileprivate static let fieldNames = [
        "original_transaction_id", "environment", "bundle_id", "product_id", "app_account_token",
        "state", "entitled", "entitled_apple", "access_until", "cause", "renewal_intent",
        "opened_at", "expires_date", "grace_until", "grace_source", "grace_exhausted_at",
        "retry_deadline", "days_unpaid_access", "amount_at_risk_milliunits", "currency",
        "was_trial_conversion", "positions", "known_to_position",
    ]

    /// The fields of a table's row.
    fileprivate var fields: [String?] {
        [
            originalTransactionID, environment, bundleID, productID, appAccountToken?.description,
            state, "\(entitled)", "\(entitledApple)", accessUntil?.description, cause,
            renewalIntent, openedAt.description, expiresDate.description, graceUntil?.description,
            graceSource, graceExhaustedAt?.description, retryDeadline.description,
            daysUnpaidAccess, amountAtRisk.map { "\($0)" }, currency, "\(wasTrialConversion)",
            positions.map { "\($0)" }.joined(separator: " "), "\(knownToPosition)",
        ]
    }
}

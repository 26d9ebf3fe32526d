internal import AppStore
internal import EventLog
internal import HTTP
internal import Ledger
internal import LedgerService
public import Postgres

/// How long an entitlement takes to look up among many subscriptions, by SQL and over HTTP.
///
/// The rows are made up straight in the read model's tables: what is timed is looking them up.
public struct QueryBenchmark {
    /// What one way of asking took.
    public struct Result: Hashable, Sendable {
        /// The way of asking.
        public var name: String
        /// The times of all questions in ms, sorted.
        public var milliseconds: [Double]

        /// The time that a share of them took at most.
        public func quantile(_ share: Double) -> Double {
            guard !milliseconds.isEmpty else { return 0 }
            let place = Int(Double(milliseconds.count) * share)
            return milliseconds[min(milliseconds.count - 1, place)]
        }
    }

    private let connect: @Sendable () throws -> Connection

    /// Prepares a benchmark in a database of its own, which has the schema and no events.
    public init(connect: @escaping @Sendable () throws -> Connection) { self.connect = connect }

    /// Fills the tables and asks.
    ///
    /// - Parameters:
    ///   - subscriptions: how many there are, two for each owner.
    ///   - questions: how many owners are asked about, each way.
    ///   - progress: told what is done next.
    /// - Returns: what each way of asking took.
    /// - Throws: what the database refuses, or `HTTPError`.
    public func run(
        subscriptions: Int,
        questions: Int,
        progress: (String) -> Void = { _ in }
    ) throws -> [Result] {
        let connection = try connect()
        progress("making up \(subscriptions) subscriptions")
        try connection.execute(
            "insert into ledger.app (app_id, bundle_id, environment)"
                + " values (1, 'com.example.subledger', 'Production') on conflict do nothing"
        )
        let sql = String(decoding: PackageResources.made_up_subscriptions_sql, as: UTF8.self)
        try connection.query(sql, [.int(Int64(subscriptions))])
        for table in ["subscription", "subscription_owner", "entitlement_interval"] {
            try connection.execute("vacuum analyze read_model.\(table)")
        }
        var random = ChaosRandom(seed: 1, stream: 1)
        let owners = (0..<questions).map { _ in
            Self.owner(random.below(max(1, subscriptions / 2)))
        }
        progress("asking in SQL")
        let statement = """
            select original_transaction_id, product_id, state, entitled, access_until
            from read_model.owner_entitlement_now where app_account_token = $1
            """
        let inSQL = try Self.timed("SQL, prepared", owners) { owner in
            let rows = try connection.query(prepared: statement, [.uuid(owner.bits)])
            guard rows.count > 0 else { throw ChaosError("no entitlement of \(owner)") }
        }
        progress("asking over HTTP")
        let overHTTP = try overHTTP(owners)
        return [inSQL, overHTTP]
    }

    private func overHTTP(_ owners: [UniqueID]) throws -> Result {
        let token = try APITokens(connect()).create(.reader, name: "bench", by: "bench").token
        let now: @Sendable () -> Timestamp = { Timestamp(milliseconds: ChaosSource.now()) }
        let connect = connect
        let service = try Service(
            options: Service.Options(http: HTTPServerConfiguration()),
            verifier: Verifier(anchors: TrustAnchors(), apps: []),
            sessions: Service.Sessions(
                appender: connect,
                projector: connect,
                reader: connect,
                auditor: connect
            ),
            log: ServiceLog(descriptor: 2, now: now),
            now: now
        )
        defer { service.stop(within: .seconds(5)) }
        let line = ChaosLine()
        return try Self.timed("HTTP, one connection", owners) { owner in
            let request = """
                GET /v1/entitlements?owner=\(owner) HTTP/1.1\r
                Host: localhost\r
                Authorization: Bearer \(token)\r
                \r

                """
            guard
                case .answered(200, _, _) = line.send(Array(request.utf8), to: service.port)
            else { throw ChaosError("no answer about \(owner)") }
        }
    }

    /// Times each question, after some that are not counted: the first are planned.
    private static func timed(
        _ name: String,
        _ owners: [UniqueID],
        _ ask: (UniqueID) throws -> Void
    ) throws -> Result {
        for owner in owners.prefix(50) { try ask(owner) }
        var times: [Double] = []
        for owner in owners {
            let start = Clock.seconds()
            try ask(owner)
            times.append((Clock.seconds() - start) * 1000)
        }
        return Result(name: name, milliseconds: times.sorted())
    }

    private static func owner(_ number: Int) -> UniqueID {
        let digits = String(number, radix: 16)
        let padding = String(repeating: "0", count: 12 - digits.count)
        guard let id = UniqueID("00000000-0000-4000-8000-\(padding)\(digits)") else {
            preconditionFailure("\(number) is no part of a UUID")
        }
        return id
    }
}

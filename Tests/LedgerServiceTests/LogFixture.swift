import Crypto
import EventLog
import Ledger
import LedgerService
import Postgres
import TestSupport

/// A database with the ledger's schema, into which a test tells lives of subscriptions.
struct LogFixture {
    /// T0 of the cases.
    static let t0 = Timestamp(milliseconds: 1_760_000_000_000)

    let database: TestDatabase
    let connection: Connection
    var app = AppKey(bundleID: "com.example.app", environment: .production)

    private let appender: Appender

    init() throws {
        database = try TestDatabase.create(template: "ledger with read models") {
            try Migrator($0, extra: ReadModels.migrations).migrate()
        }
        connection = try database.connect()
        appender = try Appender(database.connect(), limit: .bulk)
    }

    /// T0 plus so many days.
    static func day(_ days: Double) -> Timestamp {
        Timestamp(milliseconds: t0.milliseconds + Int64(days * 86_400_000))
    }

    /// Opens a session of one's own to the same database.
    var connect: @Sendable () throws -> Connection {
        { [database] in try database.connect() }
    }

    /// A notification about a transaction, as the decoder would hand it over.
    func event(
        _ stream: String,
        _ key: String,
        _ type: NotificationType,
        _ subtype: Subtype? = nil,
        at: Timestamp,
        _ transaction: TransactionFact?,
        _ renewal: RenewalFact? = nil
    ) -> NewEvent {
        var fact = Fact(kind: .notification, provenance: .jws, factAt: at)
        fact.notificationType = type
        fact.subtype = subtype
        fact.signedAt = at
        fact.transaction = transaction
        fact.transaction?.signedDate = at
        fact.renewal = renewal
        fact.renewal?.signedDate = at
        let received = Array("\(stream) \(key) \(type)".utf8)
        return NewEvent(
            app: app,
            stream: stream,
            eventKey: "n:\(key)",
            kind: .notification,
            notificationType: type.description,
            subtype: subtype?.description,
            signedAt: at,
            received: received,
            form: .raw,
            contentDigest: SHA256.digest(received),
            fact: fact
        )
    }

    /// A month that begins so many days after T0.
    static func month(
        _ id: UInt64,
        _ from: Double = 0,
        product: Symbol = "gold.month",
        change: (inout TransactionFact) -> Void = { _ in }
    ) -> TransactionFact {
        var fact = TransactionFact(transactionID: AppleID(id), signedDate: t0, digest: id)
        fact.productType = .autoRenewable
        fact.purchaseDate = day(from)
        fact.originalPurchaseDate = t0
        fact.expiresDate = day(from + 30)
        fact.productID = product
        fact.subscriptionGroupID = "group1"
        fact.reason = from == 0 ? .purchase : .renewal
        fact.ownership = .purchased
        change(&fact)
        return fact
    }

    /// Renewal info with auto-renew on, unless said otherwise.
    static func renewal(change: (inout RenewalFact) -> Void = { _ in }) -> RenewalFact {
        var fact = RenewalFact(signedDate: t0, digest: 1)
        fact.autoRenewStatus = 1
        change(&fact)
        return fact
    }

    func append(_ events: [NewEvent]) throws { _ = try appender.append(events) }

    /// Tells `count` lives, each of a purchase and some renewals, failures and refunds.
    func appendLives(_ count: Int, seed: UInt64 = 1) throws {
        var random = SeededNumbers(seed: seed)
        var events: [NewEvent] = []
        for number in 1...count { events += life(number, &random) }
        events.shuffle(using: &random)
        try append(events)
    }

    private func life(_ number: Int, _ random: inout SeededNumbers) -> [NewEvent] {
        let stream = "\(700_000 + number)"
        let id = UInt64(number) * 100
        let owner = UniqueID(bits: UInt128(number % 50 + 1))
        let owned = { (fact: inout TransactionFact) in
            if number % 7 != 0 { fact.appAccountToken = owner }
        }
        var events = [
            event(
                stream,
                "\(number)-0",
                .subscribed,
                .initialBuy,
                at: Self.day(0),
                Self.month(id, change: owned),
                Self.renewal()
            )
        ]
        for period in 1...Int.random(in: 2...8, using: &random) {
            let start = Double(period * 30)
            let month = Self.month(id + UInt64(period), start, change: owned)
            events.append(
                event(
                    stream,
                    "\(number)-\(period)",
                    .didRenew,
                    at: Self.day(start),
                    month,
                    Self.renewal { $0.autoRenewStatus = Int32.random(in: 0...1, using: &random) }
                )
            )
            guard Int.random(in: 0..<5, using: &random) == 0 else { continue }
            var refunded = month
            refunded.revocationDate = Self.day(start + 5)
            refunded.revocationReason = 0
            refunded.digest += 1_000_000
            events.append(
                event(
                    stream,
                    "\(number)-\(period)-refund",
                    .refund,
                    at: Self.day(start + 5),
                    refunded,
                    Self.renewal()
                )
            )
        }
        return events
    }

    // MARK: - What the read models hold

    /// All rows of the live generation as text, generation and position of the log left out.
    func rows(_ table: String) throws -> [String] {
        let rows = try connection.query(
            """
            select (to_jsonb(t) - 'generation')::text
            from read_model.\(table) t
            where generation = (
                select generation from read_model.current where projection = 'entitlement')
            order by 1
            """
        )
        return (0..<rows.count).map { rows.text($0, 0) ?? "" }
    }

    /// The rows of all tables.
    func allRows() throws -> [String] {
        try rows("subscription") + rows("entitlement_interval") + rows("subscription_owner")
    }

    func count(_ sql: String) throws -> Int64 {
        try connection.query("select count(*) from \(sql)").int(0, 0) ?? -1
    }
}

/// A source of numbers that gives the same ones for the same seed (SplitMix64).
struct SeededNumbers: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}

internal import EventLog
internal import Ledger
internal import Postgres

/// The consents that guardians withdrew, by the customers whom they are about.
///
/// Such an event names an `appTransactionId` and no purchase, so that it stands in a stream of its
/// own; whoever folds a subscription brings those of its customers along. There are few.
struct Withdrawals: Equatable {
    private struct Customer: Hashable {
        var appID: Int32
        var id: AppleID
    }

    private var known: [Customer: [ConsentWithdrawal]] = [:]

    /// None at all.
    init() {}

    /// Reads those that the log knows, or those of some customers.
    ///
    /// - Parameters:
    ///   - customers: their `appTransactionId`s, of whatever app; nil for everybody's.
    ///   - position: reads what was known when this was the last position.
    ///   - connection: a session that may read the log.
    /// - Throws: `PostgresError` where the statement fails.
    init(
        of customers: Set<AppleID>? = nil,
        upTo position: Int64 = .max,
        _ connection: Connection
    ) throws(PostgresError) {
        if customers?.isEmpty == true { return }
        let rows: Rows
        if let customers, customers.count > Self.fewMax {
            // Looking hundreds of customers up in each partition costs more than seeing that
            // nearly none withdrew anything.
            let few = try connection.query(
                prepared: Self.statement("limit \(Self.fewMax + 1)"),
                [.int(position)]
            )
            rows =
                few.count <= Self.fewMax
                ? few : try Self.rows(of: customers, upTo: position, connection)
        } else if let customers {
            rows = try Self.rows(of: customers, upTo: position, connection)
        } else {
            rows = try connection.query(Self.statement(""), [.int(position)])
        }
        for row in 0..<rows.count {
            guard let id = rows.text(row, 1), let at = rows.timestamp(row, 2) else { continue }
            let customer = Customer(appID: Int32(rows.int(row, 0) ?? 0), id: AppleID(id))
            guard customers?.contains(customer.id) ?? true else { continue }
            known[customer, default: []].append(
                ConsentWithdrawal(at: at, position: rows.int(row, 3) ?? 0)
            )
        }
        for customer in known.keys { known[customer]?.sort { $0.position < $1.position } }
    }

    /// So many are read whole before some customers' own are looked for.
    private static let fewMax = 50

    /// The statement that reads those of everybody, or those that a condition leaves.
    private static func statement(_ condition: String) -> String {
        """
        select app_id, app_transaction_id, signed_at, position from ledger.fact
        where notification_type = 'RESCIND_CONSENT' and app_transaction_id is not null
            and signed_at is not null and position <= $1 \(condition)
        """
    }

    private static func rows(
        of customers: Set<AppleID>,
        upTo position: Int64,
        _ connection: Connection
    ) throws(PostgresError) -> Rows {
        // Prepared, since planning it over all partitions takes longer than the answer.
        try connection.query(
            prepared: statement("and app_transaction_id = any($2::text[])"),
            [.int(position), .textArray(customers.map(\.description).sorted())]
        )
    }

    /// Whether nobody's is known.
    var isEmpty: Bool { known.isEmpty }

    /// Those that concern a subscription, by the customers whom its events name.
    func concerning(_ events: [Event], of key: SubscriptionKey) -> [ConsentWithdrawal] {
        guard !known.isEmpty else { return [] }
        return Self.customers(of: events)
            .flatMap { known[Customer(appID: key.appID, id: $0)] ?? [] }
            .sorted { $0.position < $1.position }
    }

    /// The customers whom events name: nearly always one.
    static func customers(of events: [Event]) -> Set<AppleID> {
        var customers: Set<AppleID> = []
        var last: AppleID?
        for place in events.indices {
            guard let id = events[place].fact.appTransactionID, id != last else { continue }
            customers.insert(id)
            last = id
        }
        return customers
    }
}

extension Withdrawals {
    /// Marks the subscriptions of the customers whose guardians' news stand in marked streams.
    ///
    /// Call it in the transaction that ends those streams' marks. A subscription is found by its
    /// committed facts; one that is folded for the first time meanwhile reads what is committed by
    /// then, and this too. The mark has the position of the withdrawal: whoever folds the
    /// subscription without having seen it knows no position as high and leaves the mark.
    static func spread(
        from streams: [SubscriptionKey],
        _ connection: Connection
    ) throws(PostgresError) {
        // They stand in the stream of the app, as all that belongs to no purchase does.
        let streams = streams.filter { $0.stream.hasPrefix("app:") }
        guard !streams.isEmpty else { return }
        // Seldom is one of them a withdrawal: the customers are joined only where there is one.
        let rows = try connection.query(
            prepared: """
                select c.app_id, c.app_transaction_id, c.position
                from ledger.mark m
                join ledger.fact c
                    on c.stream = m.stream and c.app_id = m.app_id and c.position = m.position
                where m.stream = any($1::text[]) and m.app_id = any($2::integer[])
                    and c.notification_type = 'RESCIND_CONSENT'
                    and c.app_transaction_id is not null
                """,
            [.textArray(streams.map(\.stream)), .intArray(streams.map { Int64($0.appID) })]
        )
        guard rows.count > 0 else { return }
        try connection.query(
            """
            insert into ledger.mark (stream, app_id, position)
            select distinct f.stream, f.app_id, c.position
            from unnest($1::integer[], $2::text[], $3::bigint[]) as c (app_id, customer, position)
            join ledger.fact f on f.app_id = c.app_id and f.app_transaction_id = c.customer
            where f.transaction_id is not null
            on conflict do nothing
            """,
            [
                .intArray((0..<rows.count).map { rows.int($0, 0) ?? 0 }),
                .textArray((0..<rows.count).map { rows.text($0, 1) ?? "" }),
                .intArray((0..<rows.count).map { rows.int($0, 2) ?? 0 }),
            ]
        )
    }

    /// The subscriptions that marked news of a guardian is about, before it was spread.
    static func marked(_ connection: Connection) throws(PostgresError) -> Rows {
        try connection.query(
            """
            select distinct f.stream, f.app_id
            from ledger.mark m
            join ledger.fact c
                on c.stream = m.stream and c.app_id = m.app_id and c.position = m.position
            join ledger.fact f
                on f.app_id = c.app_id and f.app_transaction_id = c.app_transaction_id
            where c.notification_type = 'RESCIND_CONSENT' and f.transaction_id is not null
            """
        )
    }

    /// The subscriptions of customers about whom something was withdrawn in a range of positions.
    static func subscriptions(
        after first: Int64,
        upTo last: Int64,
        _ connection: Connection
    ) throws(PostgresError) -> Rows {
        try connection.query(
            """
            select distinct f.stream, f.app_id
            from ledger.fact c
            join ledger.fact f
                on f.app_id = c.app_id and f.app_transaction_id = c.app_transaction_id
            where c.notification_type = 'RESCIND_CONSENT' and c.app_transaction_id is not null
                and c.position > $1 and c.position <= $2 and f.transaction_id is not null
            """,
            [.int(first), .int(last)]
        )
    }
}

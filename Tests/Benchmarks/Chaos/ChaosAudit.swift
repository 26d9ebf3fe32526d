internal import Crypto
internal import EventLog
internal import Ledger
internal import LedgerService
internal import Postgres

/// Holds the log and the read models to the sender's books.
struct ChaosAudit {
    /// How many breaches of one kind are named.
    private static let namedMax = 5

    let book: [ChaosBook.Entry]
    let heads: [ChaosFaults.KeptHead]
    private(set) var violations: [String] = []
    private(set) var events = 0
    private var counts: [String: Int] = [:]

    init(book: [ChaosBook.Entry], heads: [ChaosFaults.KeptHead]) {
        self.book = book
        self.heads = heads
    }

    private mutating func violate(_ kind: String, _ what: @autoclosure () -> String) {
        counts[kind, default: 0] += 1
        if counts[kind, default: 0] <= Self.namedMax { violations.append("\(kind): \(what())") }
        if counts[kind, default: 0] == Self.namedMax + 1 { violations.append("\(kind): and more") }
    }

    /// Every acknowledged notification is stored once, byte for byte, where it was said to be;
    /// nothing else is; positions are dense and follow what the sender saw happen.
    mutating func checkEvents(_ connection: Connection) throws {
        var byKey: [String: Int] = [:]
        for (number, entry) in book.enumerated() { byKey[entry.key] = number }
        let quarantined = try quarantine(connection)
        let reader = LogReader(connection)
        var position: Int64 = 0
        var stored = Array(repeating: Int64(0), count: book.count)
        var order: [Int] = []
        while true {
            let page = try reader.events(after: position, limit: 1000)
            guard !page.isEmpty else { break }
            for event in page {
                position += 1
                if event.position != position {
                    violate("positions have a gap", "\(event.position) after \(position - 1)")
                    position = event.position
                }
                // What `serve` itself records every minute of the rows beside the log.
                if event.provenance == .operator { continue }
                guard let number = byKey[event.eventKey] else {
                    violate("stored, never sent", "\(event.eventKey) at \(position)")
                    continue
                }
                if stored[number] != 0 {
                    violate("stored twice", "\(event.eventKey): \(stored[number]), \(position)")
                }
                stored[number] = position
                order.append(number)
                let evidence = try reader.evidence(of: event)
                if evidence.map({ SHA256.digest($0.received) }) != book[number].digest {
                    violate("other bytes than sent", "\(event.eventKey) at \(position)")
                }
            }
        }
        events = order.count
        let head = try reader.head().position
        if head != position { violate("the head is elsewhere", "\(head), not \(position)") }
        for (number, entry) in book.enumerated() {
            let isQuarantined = quarantined.contains(entry.digest)
            if let contradiction = entry.contradiction {
                violate("answers contradict each other", "\(entry.key) \(contradiction)")
            }
            if entry.sends == 0, stored[number] != 0 {
                violate("stored, never sent", "\(entry.key) at \(stored[number])")
            }
            guard entry.acknowledgements > 0 else { continue }
            if stored[number] == 0, !isQuarantined {
                violate("acknowledged, not stored", "\(entry.key) \(entry.position)")
            }
            if stored[number] != 0, isQuarantined {
                violate("stored and in quarantine", entry.key)
            }
            if stored[number] != 0, entry.position != 0, stored[number] != entry.position {
                violate(
                    "stored elsewhere than said",
                    "\(entry.key): \(stored[number]), not \(entry.position)"
                )
            }
            if entry.firstOutcome == .conflict { violate("a conflict", entry.key) }
        }
        checkOrder(order)
    }

    /// What was acknowledged before something else was first sent has the lower position.
    private mutating func checkOrder(_ order: [Int]) {
        var earliest = Double.infinity
        for number in order.reversed() {
            let entry = book[number]
            if entry.firstSent > earliest {
                violate("positions against the order of events", entry.key)
            }
            if entry.acknowledgements > 0 { earliest = min(earliest, entry.firstAcknowledged) }
        }
    }

    private func quarantine(_ connection: Connection) throws -> Set<[UInt8]> {
        let rows = try connection.query("select digest from ledger.quarantine")
        return Set((0..<rows.count).compactMap { rows.bytes($0, 0) })
    }

    /// The heads that were read on the way are still links of the chain, and time goes forward.
    mutating func checkChain(_ connection: Connection) throws {
        for head in heads where head.position > 0 {
            let rows = try connection.query(
                """
                select previous from ledger.batch where first_position = $1 + 1
                union all select link from ledger.head where position = $1
                """,
                [.int(head.position)]
            )
            if rows.count != 1 || rows.bytes(0, 0) != head.link {
                violate("a head that was seen is no more in the chain", "\(head.position)")
            }
        }
        let rows = try connection.query(
            """
            select first_position from (
                select first_position,
                    lag(last_position) over (order by first_position) as before,
                    recorded_at < lag(recorded_at) over (order by first_position) as is_earlier
                from ledger.batch) b
            where first_position <> coalesce(before, 0) + 1 or is_earlier
            """
        )
        for row in 0..<rows.count {
            violate("a batch does not follow the one before", "\(rows.int(row, 0) ?? 0)")
        }
    }

    /// Nothing waits, nothing is set aside.
    mutating func checkQueues(_ connection: Connection) throws {
        for (table, what) in [
            ("ledger.mark", "marks are left"), ("read_model.parked", "streams are parked"),
            ("ledger.conflict", "conflicts are stored"),
        ] {
            let count = try connection.query("select count(*) from \(table)").int(0, 0) ?? 0
            if count != 0 { violate(what, "\(count)") }
        }
    }

    /// The rows that the read models show, one hash for each subscription and table.
    static func liveRows(_ connection: Connection) throws -> [String: String] {
        let tables = try connection.query(
            """
            select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
            where n.nspname = 'read_model' and c.relkind = 'p'
                and 3 = (
                    select count(*) from pg_attribute a where a.attrelid = c.oid
                        and a.attname in ('generation', 'stream', 'app_id'))
            order by 1
            """
        )
        var result: [String: String] = [:]
        for place in 0..<tables.count {
            guard let table = tables.text(place, 0) else { continue }
            let rows = try connection.query(
                """
                select stream || ' ' || app_id,
                    count(*) || ':' || sum(hashtextextended(
                        (to_jsonb(t) - 'generation')::text, 0))
                from read_model.\(table) t
                where generation = (select max(generation) from read_model.\(table))
                group by 1
                """
            )
            for row in 0..<rows.count {
                result["\(table) \(rows.text(row, 0) ?? "")"] = rows.text(row, 1)
            }
        }
        return result
    }

    /// What was shown and what a fresh rebuild shows are the same.
    mutating func compare(live: [String: String], rebuilt: [String: String]) {
        for (key, value) in rebuilt where live[key] != value {
            violate("rebuilt rows differ from the live ones", key)
        }
        for key in live.keys where rebuilt[key] == nil {
            violate("live rows that a rebuild does not make", key)
        }
    }
}

import AppStoreSimulator
import Crypto
import EventLog
import Foundation
import Ledger
import Postgres
import Projections

@testable import Benchmarks
@testable import LedgerService

/// The seeds of the properties that need a database.
enum Seeds {
    /// So many, or the one that `SUBLEDGER_SEED` asks for, to look at one failure again.
    static func first(_ count: UInt64) -> [UInt64] {
        let only = ProcessInfo.processInfo.environment["SUBLEDGER_SEED"].flatMap { UInt64($0) }
        return only.map { [$0] } ?? Array(1...count)
    }
}

extension LogFixture {
    /// All that is ever signed about so many simulated subscriptions, in the order of signing.
    ///
    /// Rare things are made frequent: families, seats, commitments, migrations, unknown words.
    func simulatedEvents(_ subscriptions: Int, seed: UInt64) -> [NewEvent] {
        var options = Simulation.Options(subscriptions: subscriptions, seed: seed)
        options.rareFactor = 8
        let simulation = Simulation(options)
        var events: [NewEvent] = []
        for number in 0..<subscriptions {
            let life = simulation.life(number)
            for (place, notice) in life.notices.enumerated() {
                guard let fact = Fact(notice, of: life.chain) else { continue }
                let received = Array("\(number) \(place) \(notice.type)".utf8)
                events.append(
                    NewEvent(
                        app: app,
                        stream: life.chain.originalTransactionID,
                        eventKey: "n:\(number)-\(place)",
                        kind: fact.kind,
                        notificationType: fact.notificationType?.description,
                        subtype: fact.subtype?.description,
                        signedAt: fact.signedAt,
                        received: received,
                        form: .raw,
                        contentDigest: SHA256.digest(received),
                        fact: fact
                    )
                )
            }
        }
        return events.sorted {
            ($0.signedAt?.milliseconds ?? 0, $0.eventKey)
                < ($1.signedAt?.milliseconds ?? 0, $1.eventKey)
        }
    }

    /// What every table of every read model holds, by the table's name, one text a row.
    ///
    /// Another log gives its events other positions, so that they are named by their keys here;
    /// `known_to_position` becomes whether it is the end of the subscription's stream.
    func contents() throws -> [String: [String]] {
        try connection.execute(
            """
            drop table if exists event_keys;
            create temporary table event_keys as select position, event_key from ledger.event;
            create unique index on event_keys (position);
            analyze event_keys
            """
        )
        var contents: [String: [String]] = [:]
        for projection in Catalogue.all {
            for table in projection.tables {
                let rows = try connection.query(
                    Self.rowsByKey(of: table.name),
                    [.text(projection.name)]
                )
                contents[table.name] = (0..<rows.count).map { rows.text($0, 0) ?? "" }
            }
        }
        return contents
    }

    private static func rowsByKey(of table: String) -> String {
        """
        select (
            select jsonb_object_agg(e.key, case
                when e.key = 'known_to_position' then to_jsonb(e.value::bigint = (
                    select max(f.position) from ledger.fact f
                    where f.stream = t.stream and f.app_id = t.app_id))
                when e.key !~ 'position' then e.value
                when jsonb_typeof(e.value) = 'array' then (
                    select jsonb_agg(k.event_key order by k.event_key)
                    from jsonb_array_elements_text(e.value) p
                    left join event_keys k on k.position = p.value::bigint)
                when jsonb_typeof(e.value) = 'number' then (
                    select to_jsonb(k.event_key) from event_keys k
                    where k.position = e.value::bigint)
                else e.value end)::text
            from jsonb_each(to_jsonb(t) - 'generation') e)
        from read_model.\(table) t
        where t.generation = (
            select generation from read_model.current where projection = $1)
        order by 1
        """
    }

    /// The digest of the rows of every read model, as the views show them now.
    func liveDigests() throws -> [Digest] {
        try ReadModels.names.map { name in try Digest(ofLive: name, connection) }
    }

    /// The digest of the rows that the events up to a position fold to, of every read model.
    func digests(foldingUpTo position: Int64) throws -> [Digest] {
        let generations = Catalogue.all.map { Generation($0, 0) }
        var folder = StreamFolder(
            generations,
            try AppRegistry(connection),
            try Withdrawals(upTo: position, connection)
        )
        let reader = LogReader(connection)
        for slice in try reader.slices() {
            try reader.forEachStream(in: slice, upTo: position) { folder.add($1, of: $0) }
        }
        return folder.rows.map { rows in
            var digest = Digest()
            for (place, table) in rows.tables.enumerated() {
                for row in table.starts.indices {
                    digest.add(table.buffer.bytes[table.range(row)], table: place)
                }
            }
            return digest
        }
    }

    /// The last position of the log.
    func head() throws -> Int64 { try LogReader(connection).head().position }
}

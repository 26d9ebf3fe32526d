import AppStore
import AppStoreSimulator
import Crypto
import EventLog
import Ledger
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import LedgerService

/// A byte changed in any column of any table that never changes is named by the audit.
struct LedgerAuditTests {
    /// A ledger with a row in every immutable table, all of it recorded, and nothing guarded.
    private static func ledger() throws -> IngestSample {
        let reconcile = try ReconcileSample()
        let sample = reconcile.sample
        let connection = try sample.database.connect()
        let verifier = try sample.verifier()
        let appender = try Appender(connection)
        for number in 1...4 {
            guard
                case .trusted(let document) = verifier.verify(
                    sample.purchase(number),
                    now: IngestSample.now
                ), case .event(let event, _) = Admission(document)
            else {
                throw EventLogError(.invalid, "the sample does not verify")
            }
            _ = try appender.append([event])
            // The same key with another content goes to ledger.conflict.
            var other = event
            other.contentDigest = SHA256.digest([1])
            if number == 1 { _ = try appender.append([other]) }
        }
        try read(reconcile)
        try extend(sample)
        for text in ["first", "second"] {
            try appender.quarantine(
                QuarantinedDocument(received: Array(text.utf8), reason: "bad_json")
            )
        }
        let quarantine = Quarantine(connection)
        let entry = try #require(
            try quarantine.entries(includingResolved: false, limit: 1).first
        )
        _ = try quarantine.resolve(entry, as: .dismissed, by: "olga", ticket: "SUP-5")
        let tokens = APITokens(connection)
        let token = try tokens.create(.operator, name: "peter", by: "olga").kept
        _ = try tokens.revoke(token.id, by: "olga")
        let app = AppKey(bundleID: IngestSample.bundleID, environment: .sandbox)
        var rules = AppRules(environment: .sandbox, gracePeriodDays: 16)
        rules.products["gold"] = ProductRules(groupID: "g", level: 1, period: .oneMonth)
        _ = try RuleBook(connection).record(
            rules,
            appAppleID: 77,
            of: app,
            operator: "olga",
            ticket: "SUP-6"
        )
        try connection.execute(
            """
            insert into ledger.fx_rate (rate_date, from_currency, to_currency, version, rate)
            values ('2025-01-01', 'EUR', 'USD', 1, 1.1)
            """
        )
        let count = try RecordedRows(connection).record(through: appender, now: IngestSample.now)
        #expect(count > 20)
        #expect(try RecordedRows(connection).record(through: appender, now: IngestSample.now) == 0)
        return sample
    }

    /// An answer of the Server API with two signed texts in it, kept as one body and two events.
    private static func read(_ reconcile: ReconcileSample) throws {
        let id = reconcile.sample.chain(5).originalTransactionID
        let body = Array(reconcile.statuses(5, at: 1_700_000_050_000).utf8)
        let response = APIResponse(
            endpoint: .subscriptionStatuses(id: id),
            requestID: "3a0e2c1f-0000-4000-8000-000000000001",
            bundleID: IngestSample.bundleID,
            environment: .sandbox,
            status: 200,
            body: body,
            answer: try APIAnswer(body),
            receivedAt: IngestSample.now
        )
        let recorded = try reconcile.recorder().record(response, about: id)
        #expect(recorded.appended == 3 && recorded.rejected.isEmpty)
    }

    /// A request, an approval by another, a lost answer and what settled it.
    private static func extend(_ sample: IngestSample) throws {
        let connect: @Sendable () throws -> Connection = { [database = sample.database] in
            try database.connect()
        }
        let app = AppKey(bundleID: IngestSample.bundleID, environment: .sandbox)
        let apple = CounterpartApple(database: connect, app: app)
        apple.manner.withLock { $0 = .refuses(4_030_004) }
        var settings = ExtensionSettings()
        settings.approvesAlways = true
        let extensions = try Extensions(
            reading: connect(),
            appending: connect(),
            gateway: apple,
            settings: settings,
            now: { Timestamp(milliseconds: 1_700_000_100_000) }
        )
        var wish = ExtensionBench.wish(sample.chain(1).originalTransactionID)
        wish.withoutFreshStatus = true
        wish.attemptIneligible = true
        let asked = try extensions.request(wish, by: ExtensionBench.olga)
        _ = try extensions.approve(asked.request, by: ExtensionBench.peter, note: "go")
    }

    @Test func anUntouchedLedgerIsWhole() throws {
        let sample = try Self.ledger()
        let connection = try sample.database.connect()
        let report = try LedgerAudit(connection).run()
        #expect(report.difference == nil)
        #expect(report.signatures == 6)
        let codecs = try connection.query("select distinct codec from ledger.evidence order by 1")
        #expect((0..<codecs.count).map { codecs.int($0, 0) } == [0, 2, 3])
        #expect(report.rows > 20)
        #expect(report.unrecordedRows == 0)
        #expect(report.events == report.head.position)
    }

    @Test func aRowThatNoEventRecordedIsCounted() throws {
        let sample = try Self.ledger()
        let connection = try sample.database.connect()
        _ = try APITokens(connection).create(.reader, name: "shop", by: "olga")
        let report = try LedgerAudit(connection).run()
        #expect(report.difference == nil)
        #expect(report.unrecordedRows == 1)
    }

    private struct Column {
        var table: String
        var name: String
        var type: String
        var keys: [String]
    }

    /// The columns of one table, or of all whose rows never change.
    private static func columns(
        of table: String? = nil,
        _ connection: Connection
    ) throws -> [Column] {
        let rows = try connection.query(
            """
            select c.relname::text, a.attname::text, format_type(a.atttypid, null),
                (select string_agg(quote_ident(k.attname), ',') from pg_attribute k
                    where k.attrelid = c.oid and k.attnum = any (p.conkey))
            from pg_class c
            join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
            join pg_constraint p on p.conrelid = c.oid and p.contype = 'p'
            where c.relnamespace = 'ledger'::regnamespace and c.relkind in ('r', 'p')
                and not c.relispartition and (
                    c.relname = $1 or $1 is null and exists (
                        select from pg_trigger t
                        where t.tgrelid = c.oid and t.tgname = 'refuse_row'
                    )
                )
            order by 1, a.attnum
            """,
            [table.map { .text($0) } ?? .null]
        )
        return (0..<rows.count).map { row in
            Column(
                table: rows.text(row, 0) ?? "",
                name: rows.text(row, 1) ?? "",
                type: rows.text(row, 2) ?? "",
                keys: (rows.text(row, 3) ?? "").split(separator: ",").map(String.init)
            )
        }
    }

    /// Another value of a column's type, made of the one that is there.
    private static func other(_ column: Column) throws -> String {
        let name = "\"\(column.name)\""
        switch column.type {
        case "text": return "coalesce(\(name), '') || 'x'"
        case "integer", "bigint", "smallint", "numeric": return "coalesce(\(name), 0) + 1000"
        case "boolean": return "not coalesce(\(name), false)"
        case "timestamp with time zone":
            return "coalesce(\(name), 'epoch') + interval '1 millisecond'"
        case "date": return "\(name) + 1"
        case "uuid": return "gen_random_uuid()"
        case "bytea":
            return "case when \(name) is null or length(\(name)) = 0 then '\\x01'"
                + " else set_byte(\(name), 0, get_byte(\(name), 0) # 1) end"
        case "text[]": return "array_append(coalesce(\(name), '{}'), 'x')"
        case "integer[]": return "\(name) || 1"
        case "bytea[]": return "\(name)[:cardinality(\(name)) - 1] || '\\x7b7d'::bytea"
        default: throw EventLogError(.invalid, "no other value for \(column.type)")
        }
    }

    private static let keys =
        "position, app_id, decoder, kind, provenance, fact_at, transaction_id,"
        + " transaction_signed_date"

    /// The decoded columns can be made again from the evidence, so that rows of them may change;
    /// what they say is compared nevertheless.
    @Test func aChangeOfAnyDecodedColumnIsNamed() throws {
        let sample = try Self.ledger()
        let connection = try sample.database.connect()
        let row = "position = (select min(position) from ledger.fact where price is not null)"
        var changed = 0
        // Where the decoder is another one, the row is not used at all.
        for column in try Self.columns(of: "fact", connection) where column.name != "decoder" {
            try connection.execute(
                """
                create temporary table kept as select * from ledger.fact;
                update ledger.fact set "\(column.name)" = \(try Self.other(column)) where \(row)
                """
            )
            let report = try LedgerAudit(connection).run()
            #expect(report.difference != nil, "\(column.name): nothing was found")
            changed += 1
            try connection.execute(
                """
                delete from ledger.fact;
                insert into ledger.fact select * from kept;
                drop table kept
                """
            )
        }
        #expect(changed > 60)
        // A row that is gone, or one that nobody appended, shows as well.
        for change in [
            "delete from ledger.fact where \(row)",
            """
            insert into ledger.fact (\(Self.keys), stream)
            select \(Self.keys), stream || '0' from ledger.fact where \(row)
            """,
        ] {
            try connection.execute(
                "create temporary table kept as select * from ledger.fact; \(change)"
            )
            #expect(try LedgerAudit(connection).run().difference != nil, "\(change)")
            try connection.execute(
                """
                delete from ledger.fact;
                insert into ledger.fact select * from kept;
                drop table kept
                """
            )
        }
        #expect(try LedgerAudit(connection).run().difference == nil)
        // Nor is evidence whole that belongs to no event.
        try connection.execute(
            """
            create temporary table one as select * from ledger.evidence where position = 1;
            update one set position = 999999;
            insert into ledger.evidence select * from one
            """
        )
        let stray = try LedgerAudit(connection).run().difference
        #expect(stray?.position == 999_999)
        #expect(stray?.description.contains("ledger.evidence") == true)
    }

    @Test func aChangeOfAnyColumnOfAnyTableThatNeverChangesIsNamed() throws {
        let sample = try Self.ledger()
        let connection = try sample.database.connect()
        // What a superuser could do: no trigger, no foreign key, no check stands in the way.
        try connection.execute("set session_replication_role = replica")
        try connection.execute(
            """
            do $$
            declare
                line record;
            begin
                for line in
                    select conrelid::regclass as relation, conname from pg_constraint
                    where connamespace = 'ledger'::regnamespace and contype = 'c'
                        and conislocal and coninhcount = 0
                loop
                    execute format('alter table %s drop constraint %I', line.relation, line.conname);
                end loop;
                for line in
                    select tgrelid::regclass as relation from pg_trigger
                    where tgname in ('refuse_row', 'refuse_statement') and tgparentid = 0
                loop
                    execute format('alter table %s disable trigger all', line.relation);
                end loop;
                for line in select relation from ledger.parts('ledger.event')
                    union select relation from ledger.parts('ledger.evidence')
                loop
                    execute format('alter table %s disable trigger all', line.relation);
                end loop;
            end
            $$
            """
        )
        let columns = try Self.columns(connection)
        #expect(Set(columns.map(\.table)).count >= 18)
        var changed = 0
        for column in columns {
            let table = "ledger.\"\(column.table)\""
            let filled = try connection.query("select count(*) from \(table)").int(0, 0) ?? 0
            #expect(filled > 0, "\(column.table) has no row, so nothing is shown of it")
            let keys = column.keys.joined(separator: ", ")
            try connection.execute(
                """
                create temporary table kept as select * from \(table);
                update \(table) set "\(column.name)" = \(try Self.other(column))
                where (\(keys)) = (select \(keys) from \(table) order by \(keys) limit 1)
                """
            )
            let report = try LedgerAudit(connection).run()
            #expect(
                report.difference != nil,
                "\(column.table).\(column.name): nothing was found"
            )
            changed += 1
            try connection.execute(
                "delete from \(table); insert into \(table) select * from kept; drop table kept"
            )
        }
        #expect(changed > 130)
        #expect(try LedgerAudit(connection).run().difference == nil)
    }

    /// A false signature is named although every hash was made to fit it.
    @Test func aForgedEventInAChainThatFitsIsNamed() throws {
        let sample = try IngestSample()
        let connection = try sample.database.connect()
        guard
            case .trusted(let document) = try sample.verifier().verify(
                sample.purchase(1),
                now: IngestSample.now
            ), case .event(var event, _) = Admission(document)
        else {
            Issue.record("the sample does not verify")
            return
        }
        let place = event.received.count - 20
        event.received[place] = event.received[place] == 65 ? 66 : 65
        _ = try Appender(connection).append([event])
        #expect(try LogAudit(connection).run().difference == nil)
        let report = try LedgerAudit(connection).run()
        #expect(report.difference?.position == 1)
        #expect(report.difference?.description.contains("bad_signature") == true)
    }
}

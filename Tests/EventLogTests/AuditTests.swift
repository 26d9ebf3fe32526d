import Crypto
import Ledger
import Postgres
import Schema
import Testing

@testable import EventLog

struct AuditTests {
    /// What a superuser who dropped the triggers could do, and what the audit says.
    static let tampering: [(sql: String, position: Int64)] = [
        ("update ledger.event set operator = 'Eve' where position = 7", 7),
        ("update ledger.event set ticket = null where position = 7", 7),
        (
            "update ledger.event set recorded_at = recorded_at - interval '1 s' where position = 7",
            1
        ),
        ("update ledger.event set signed_at = null where position = 7", 1),
        ("update ledger.event set event_key = 'n:x' where position = 7", 1),
        ("update ledger.event set kind = 'receipt' where position = 7", 1),
        ("update ledger.event set notification_type = 'REFUND' where position = 7", 1),
        ("update ledger.event set subtype = 'X' where position = 7", 1),
        ("update ledger.event set provenance = 'tls' where position = 7", 1),
        ("update ledger.event set correlation = 'x' where position = 7", 1),
        ("update ledger.event set content_digest = sha256('x') where position = 7", 1),
        ("update ledger.event set sealed_digest = sha256('x') where position = 7", 7),
        ("update ledger.event set app_id = 2 where position = 7", 7),
        ("update ledger.app set bundle_id = 'com.example.other' where app_id = 1", 1),
        ("update ledger.evidence set salt = decode(repeat('00', 16), 'hex') where position = 7", 7),
        ("update ledger.evidence set payloads[1] = 'x' where position = 7", 7),
        (
            "update ledger.evidence set signatures = overlay(signatures placing '\\x00' from 5) where position = 7",
            7
        ),
        ("update ledger.evidence set posted[2] = ' }' where position = 7", 7),
        ("update ledger.evidence set posted = posted[1:1] where position = 7", 7),
        ("update ledger.evidence set posted = null where position = 7", 7),
        ("update ledger.evidence set posted = array['x'::bytea] where position = 8", 8),
        ("delete from ledger.evidence where position = 7", 7),
        ("delete from ledger.event where position = 7", 7),
        ("delete from ledger.event where position > 20", 21),
        ("delete from ledger.batch where first_position = 1", 1),
        ("delete from ledger.batch where first_position = 21", 21),
        ("update ledger.batch set root = previous where first_position = 11", 11),
        ("update ledger.batch set previous = root where first_position = 11", 11),
        (
            "update ledger.batch set recorded_at = recorded_at + interval '1 s' where first_position = 21",
            30
        ),
        ("update ledger.head set position = 29", 30),
        (
            "update ledger.jws_header set header = 'eyJ' || header, digest = sha256(convert_to('eyJ' || header, 'UTF8'))",
            1
        ),
    ]

    /// Thirty events in three batches, with the triggers off.
    private static func unguarded() throws -> LogDatabase {
        let log = try LogDatabase()
        let appender = try log.appender()
        let other = AppKey(bundleID: "com.example.app", environment: .production)
        for batch in 0..<3 {
            var events = Sample.notifications(10, prefix: "7\(batch)")
            for index in events.indices {
                events[index].operator = "Ada"
                events[index].ticket = "T-1"
            }
            if batch == 2 { events[9].app = other }
            if batch == 0 {
                let text = events[6].received
                let body = Array("{ \"signedPayload\":\"".utf8) + text + Array("\"}".utf8)
                events[6].posted = PostedBody(body, around: text)
            }
            _ = try appender.append(events)
        }
        let connection = try log.connect()
        let rows = try connection.query(
            """
            select distinct tgrelid::regclass::text from pg_trigger
            where tgname like 'refuse\\_%'
            """
        )
        for row in 0..<rows.count {
            let table = rows.text(row, 0) ?? ""
            try connection.execute("alter table \(table) disable trigger user")
        }
        return log
    }

    @Test func theAuditNamesTheFirstChange() throws {
        let log = try Self.unguarded()
        defer { log.stayAlive() }
        let connection = try log.connect()
        for (sql, position) in Self.tampering {
            try connection.execute("begin; \(sql)")
            let report = try LogAudit(connection).runInside(nil) { _ in }
            try connection.execute("rollback")
            #expect(
                report.difference?.position == position,
                "\(sql): \(report.difference?.description ?? "nothing")"
            )
        }
        #expect(try LogAudit(connection).run().difference == nil)
    }

    @Test func anUntouchedLogIsWhole() throws {
        let log = try Self.unguarded()
        defer { log.stayAlive() }
        let report = try LogAudit(log.connect(as: LogDatabase.roles.auditor)).run()
        #expect(report.difference == nil)
        #expect(report.events == 30)
    }

    /// Whoever cuts the tail and puts the head back is found by a head that was kept elsewhere.
    @Test func aCutTailShowsAgainstAKeptHead() throws {
        let log = try Self.unguarded()
        defer { log.stayAlive() }
        let kept = try LogReader(log.connect()).head()
        let connection = try log.connect()
        let before = try connection.query(
            "select previous, recorded_at from ledger.batch where first_position = 21"
        )
        try connection.execute(
            """
            delete from ledger.event where position > 20;
            delete from ledger.evidence where position > 20;
            delete from ledger.batch where first_position > 20
            """
        )
        try connection.query(
            "update ledger.head set position = 20, link = $1",
            [.bytes(before.bytes(0, 0) ?? [])]
        )
        #expect(try LogAudit(connection).run().difference == nil)
        let report = try LogAudit(connection).run(keeping: kept)
        #expect(report.difference?.position == 30)
        _ = try log.appender().append(Sample.notifications(10, prefix: "99"))
        let regrown = try LogAudit(connection).run(keeping: kept)
        #expect(regrown.difference?.position == 30)
    }

    @Test func aKeptHeadOfAnEarlierDayStillHolds() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let appender = try log.appender()
        _ = try appender.append(Sample.notifications(10))
        let kept = try LogReader(log.connect()).head()
        _ = try appender.append(Sample.notifications(10, prefix: "80"))
        #expect(try LogAudit(log.connect()).run(keeping: kept).difference == nil)
    }

    /// RFC 6962: the tree is split at the largest power of two below the count.
    @Test func theRootIsTheMerkleTreeHashOfTheRFC() {
        let leaves = (0..<7).map { SHA256.digest([UInt8($0)]) }
        func node(_ left: [UInt8], _ right: [UInt8]) -> [UInt8] {
            SHA256.digest([1] + left + right)
        }
        let four = node(node(leaves[0], leaves[1]), node(leaves[2], leaves[3]))
        #expect(Chain.root([leaves[0]]) == leaves[0])
        #expect(Chain.root(Array(leaves[..<3])) == node(node(leaves[0], leaves[1]), leaves[2]))
        #expect(Chain.root(Array(leaves[..<4])) == four)
        #expect(Chain.root(leaves) == node(four, node(node(leaves[4], leaves[5]), leaves[6])))
    }

    /// Erasing the evidence and its salt leaves every other event's proof intact.
    @Test func aLeafDependsOnPersonalFieldsOnlyThroughTheirDigest() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        _ = try log.appender().append(Sample.notifications(2))
        let stored = try #require(try LogReader(log.connect()).event(at: 1))
        var erased = stored
        erased.operator = nil
        erased.ticket = nil
        #expect(Chain.leaf(stored, app: Sample.app) == Chain.leaf(erased, app: Sample.app))
        var resealed = stored
        resealed.sealedDigest[0] ^= 1
        #expect(Chain.leaf(stored, app: Sample.app) != Chain.leaf(resealed, app: Sample.app))
    }
}

import EventLog
import Glibc
import Ledger
import Postgres
import Testing

@testable import LedgerService

/// What was known at a position is what a log that ends there says, whatever came later.
@Suite struct KnownAtTests {
    /// The instants that are asked about: of a purchase, a renewal, and long afterwards.
    private static let instants = [45, 200, 430].map { LogFixture.day($0) }

    /// What the read models said when the log ended at a position.
    private struct Seen {
        var position: Int64
        var explanation: Explanation
        var answers: [[EntitlementAnswer]]
        var owners: [UniqueID: [[EntitlementAnswer]]]
    }

    private static func seen(
        _ stream: String,
        _ log: LogFixture,
        rebuilt: Bool = false
    ) throws -> Seen {
        if rebuilt {
            _ = try Rebuild(["entitlement"], connect: log.connect).run()
        } else {
            try Projector(log.connection).project()
        }
        let explanation = try #require(
            try Explanation.explanations(of: stream, log.connection).first
        )
        var owners: [UniqueID: [[EntitlementAnswer]]] = [:]
        for owner in explanation.owners.map(\.token) {
            owners[owner] = try instants.map {
                try EntitlementQuery(at: $0, owner: owner).answers(log.connection)
            }
        }
        return Seen(
            position: try log.head(),
            explanation: explanation,
            answers: try instants.map {
                try EntitlementQuery(at: $0, subscription: stream).answers(log.connection)
            },
            owners: owners
        )
    }

    @Test(arguments: Seeds.first(2))
    func everyPositionSaysWhatTheLogSaidWhenItEndedThere(seed: UInt64) throws {
        let log = try LogFixture()
        var random = SeededNumbers(seed: seed)
        var events = log.simulatedEvents(14, seed: seed)
        events.shuffle(using: &random)
        events = Array(events.prefix(110))
        var seen: [Seen] = []
        for (place, event) in events.enumerated() {
            try log.append([event])
            seen.append(try Self.seen(event.stream, log))
            guard place == events.count / 2 else { continue }
            // A policy belongs to what is known from when it is recorded on.
            _ = try RuleBook(log.connection).changePolicy(
                of: log.app,
                from: .retroactively(from: nil),
                operator: "olga",
                ticket: "SUP-1"
            ) { $0.billingRetryAccess = .allow }
            seen[place] = try Self.seen(event.stream, log, rebuilt: true)
            usleep(2000)
        }
        var answered = 0
        for then in seen {
            let what = "position \(then.position), SUBLEDGER_SEED=\(seed)"
            let stream = then.explanation.stream
            let knowledge = Knowledge.position(then.position)
            let explanation = try #require(
                try Explanation.explanations(of: stream, known: knowledge, log.connection).first
            )
            #expect(explanation.timeline == then.explanation.timeline, "\(what)")
            #expect(explanation.owners == then.explanation.owners, "\(what)")
            #expect(explanation.anomalies == then.explanation.anomalies, "\(what)")
            #expect(explanation.refund == then.explanation.refund, "\(what)")
            #expect(explanation.events == then.explanation.events, "\(what)")
            #expect(explanation.known?.position == then.position)
            for (instant, answers) in zip(Self.instants, then.answers) {
                let query = EntitlementQuery(at: instant, subscription: stream)
                let known = try query.known(knowledge, log.connection)
                #expect(known.answers == answers, "\(what), at \(instant)")
                answered += answers.count
            }
            for (owner, all) in then.owners {
                for (instant, answers) in zip(Self.instants, all) {
                    let query = EntitlementQuery(at: instant, owner: owner)
                    let known = try query.known(knowledge, log.connection)
                    #expect(known.answers == answers, "\(what), \(owner) at \(instant)")
                    answered += answers.count
                }
            }
        }
        // It could fail: there are answers, and what is known today is often another one.
        let newest = try seen.filter { then in
            let now = try Explanation.explanations(of: then.explanation.stream, log.connection)
            return now.first?.timeline != then.explanation.timeline
        }
        #expect(answered > 0 && newest.count > 20, "SUBLEDGER_SEED=\(seed)")
    }

    // MARK: - Instants of knowledge

    /// A month, and its refund that became known later.
    private static func refunded() throws -> LogFixture {
        let log = try LogFixture()
        var refund = LogFixture.month(1) { $0.appAccountToken = UniqueID(bits: 7) }
        try log.append([
            log.event("7001", "a", .subscribed, .initialBuy, at: LogFixture.t0, refund)
        ])
        usleep(5000)
        refund.revocationDate = LogFixture.day(9)
        refund.revocationReason = 0
        refund.digest = 99
        try log.append([log.event("7001", "b", .refund, at: LogFixture.day(9), refund)])
        return log
    }

    @Test func knowledgeBeginsWithTheInstantOfTheRecordAndEndsBeforeTheNext() throws {
        let log = try Self.refunded()
        let rows = try log.connection.query(
            "select recorded_at from ledger.event order by position"
        )
        let recorded = (0..<2).map { Timestamp(milliseconds: rows.instant($0, 0) ?? 0) }
        #expect(recorded[0] < recorded[1])
        func known(_ instant: Timestamp, plus milliseconds: Int64) throws -> Int64? {
            let moved = Timestamp(milliseconds: instant.milliseconds + milliseconds)
            return try LogReader(log.connection).prefix(of: .instant(moved))?.position
        }
        #expect(try known(recorded[0], plus: -1) == 0)
        #expect(try known(recorded[0], plus: 0) == 1)
        #expect(try known(recorded[1], plus: -1) == 1)
        #expect(try known(recorded[1], plus: 0) == 2)
        #expect(try known(recorded[1], plus: 86_400_000) == 2)

        let first = try #require(try LogReader(log.connection).prefix(of: .position(1)))
        #expect(first.knownAt == recorded[0])
        #expect(first.rulesRecordedBy == Timestamp(milliseconds: recorded[1].milliseconds - 1))
        let last = try #require(try LogReader(log.connection).prefix(of: .position(2)))
        #expect(last.rulesRecordedBy == nil)
        let none = try #require(try LogReader(log.connection).prefix(of: .position(0)))
        #expect(none.knownAt == nil)
        #expect(try LogReader(log.connection).prefix(of: .position(3)) == nil)
    }

    @Test func effectAndKnowledgeAreAskedTogether() throws {
        let log = try Self.refunded()
        func state(on day: Double, _ knowledge: Knowledge) throws -> [String] {
            let query = EntitlementQuery(at: LogFixture.day(day), subscription: "7001")
            let known = try query.known(knowledge, log.connection)
            return known.answers.map(\.state)
        }
        // Before the refund was told, the tenth day was to be paid for; now it never was.
        #expect(try state(on: 10, .position(1)) == ["active"])
        #expect(try state(on: 10, .position(2)) == ["revoked"])
        #expect(try state(on: 3, .position(2)) == ["active"])
        #expect(try state(on: 3, .position(0)) == [])
        #expect(try state(on: -1, .position(2)) == [])
    }

    @Test func bothInstantsAreInTheAnswer() throws {
        let log = try Self.refunded()
        let explanation = try #require(
            try Explanation.explanations(
                of: "7001",
                at: LogFixture.day(10),
                known: .position(1),
                log.connection
            ).first
        )
        #expect(explanation.events.map(\.position) == [1])
        #expect(explanation.answer?.state == "active")
        #expect(explanation.text.contains(", to event 1.\n"))
        var json = JSONWriter()
        explanation.write(to: &json)
        #expect(json.text.contains(#""known_at_position":1,"at":"2025-10-19T08:53:20.000Z""#))
        #expect(
            try Explanation.explanations(of: "7001", known: .position(0), log.connection).isEmpty
        )
    }

    @Test func whatCannotBeAnsweredIsNamed() throws {
        let log = try Self.refunded()
        let query = EntitlementQuery(at: LogFixture.day(1), subscription: "7001")
        let ahead = #expect(throws: ReadModelError.self) {
            try query.known(.position(3), log.connection)
        }
        #expect(ahead?.code == .notKnown)
        #expect(ahead?.message.contains("ends at position 2") == true)
        let all = #expect(throws: ReadModelError.self) {
            try EntitlementQuery(at: LogFixture.t0).known(.position(1), log.connection)
        }
        #expect(all?.code == .question)
        let owned = try EntitlementQuery(at: LogFixture.t0, owner: UniqueID(bits: 7))
            .known(.position(1), log.connection)
        #expect(owned.answers.map(\.via) == ["own"])
        #expect(owned.answers.map(\.counts) == [true])
    }
}

import EventLog
import Ledger
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import LedgerService

/// Four eyes: who asks does not approve, and what is approved is what was asked for.
struct ExtensionApprovalTests {
    private func bench() throws -> ExtensionBench {
        let bench = try ExtensionBench()
        bench.settings.approvesOverDays = 5
        try bench.buy()
        return bench
    }

    @Test func aRequestThatNeedsApprovalWaitsAndIsSentByAnother() throws {
        let bench = try bench()
        let waiting = try bench.extend()
        #expect(waiting.outcome == .requested)
        #expect(waiting.approvalRule == "days_over_5")
        #expect(bench.apple.orders.withLock { $0.isEmpty })
        bench.now = LogFixture.day(10.5)
        #expect(try bench.extend(ExtensionBench.wish(ticket: "2")).rule == "extension_in_progress")
        bench.now = LogFixture.day(11)
        let done = try bench.extensions().approve(waiting.request, by: ExtensionBench.peter)
        #expect(done.outcome == .accepted)
        let row = try #require(try bench.audit().first)
        #expect(row["approved_by"] == "token:peter")
        #expect(row["approved_at"] == LogFixture.day(11).description)
        #expect(row["operator_authenticated"] == "os:olga@desk1/ops")
        #expect(row["approval_rule"] == "days_over_5")
        #expect(throws: ExtensionProblem.self) {
            try bench.extensions().approve(waiting.request, by: ExtensionBench.peter)
        }
    }

    @Test func nobodyApprovesTheirOwn() throws {
        let bench = try bench()
        let request = try bench.extend().request
        #expect(throws: ExtensionProblem.selfApproval) {
            try bench.extensions().approve(request, by: ExtensionBench.olga)
        }
        // The same account in capitals, and another account that says the same name.
        for actor in [
            ExtensionActor(osUser: "OLGA", host: "desk1", databaseRole: "ops", claimed: "x"),
            ExtensionActor(osUser: "root", host: "desk2", databaseRole: "dba", claimed: "olga"),
        ] {
            bench.now = bench.now.adding(.minutes(1))
            #expect(throws: ExtensionProblem.selfApproval) {
                try bench.extensions().approve(request, by: actor)
            }
        }
        #expect(bench.apple.orders.withLock { $0.isEmpty })
        // Each try is on record, and changes nothing of the request.
        let row = try #require(try bench.audit().first)
        #expect(row["outcome"] == "requested" && row["refusal_rule"] == nil)
        #expect(row["refused_approvals"] == "3")
        #expect(row["refused_approver"] == "os:root@desk2/dba")
        #expect(row["refused_approval_at"] == bench.now.description)
        let kind = "extension_approval_refused"
        let events = try bench.log.connection.query(
            "select operator from ledger.event where kind = $1 order by position",
            [.text(kind)]
        )
        #expect(
            (0..<events.count).map { events.text($0, 0) }
                == ["os:olga@desk1/ops", "os:OLGA@desk1/ops", "os:root@desk2/dba"]
        )
        #expect(try bench.extensions().status(of: request).rule == nil)
        let approved = try bench.extensions().approve(request, by: ExtensionBench.peter)
        #expect(approved.outcome == .accepted)
    }

    /// Behind the handler the database refuses it too, also for a superuser.
    @Test func theDatabaseRefusesAnApprovalOfOnesOwn() throws {
        let bench = try bench()
        let request = try bench.extend().request
        func approve(by approver: String, of requester: String, days: String = "") throws {
            try bench.log.connection.query(
                """
                insert into ledger.extension_step (stream, app_id, position, request_identifier,
                    kind, at, operator_authenticated, requested_by, binding)
                select stream, app_id, 999, request_identifier, 'extension_approved', now(), $2,
                    $3, binding || $4
                from ledger.extension_request where request_identifier = $1
                """,
                [.uuid(request.bits), .text(approver), .text(requester), .text(days)]
            )
        }
        let olga = "os:olga@desk1/ops"
        for (approver, requester, change, state) in [
            (olga, olga, "", "23514"), ("OS:Olga@desk1/ops", olga, "", "23514"),
            // A requester that did not ask, and another request than was asked for.
            (olga, "somebody", "", "23503"), ("token:peter", olga, "x", "23503"),
        ] {
            let error = #expect(throws: PostgresError.self) {
                try approve(by: approver, of: requester, days: change)
            }
            #expect(error?.sqlState == state, "\(approver) \(requester)")
        }
        try approve(by: "token:peter", of: olga)
    }

    @Test func whatChangedSinceIsAskedForAnew() throws {
        let bench = try bench()
        let request = try bench.extend().request
        bench.now = LogFixture.day(12)
        bench.apple.books.withLock { $0["1000"]?.expiresDate = LogFixture.day(33) }
        #expect(throws: ExtensionProblem.changed) {
            try bench.extensions().approve(request, by: ExtensionBench.peter)
        }
        #expect(bench.apple.orders.withLock { $0.isEmpty })
    }

    @Test func aRejectedRequestIsOver() throws {
        let bench = try bench()
        let request = try bench.extend().request
        let rejected = try bench.extensions().reject(
            request,
            by: ExtensionBench.peter,
            note: "too long"
        )
        #expect(rejected.outcome == .refusedLocally)
        #expect(rejected.rule == "rejected")
        let row = try #require(try bench.audit().first)
        #expect(row["refusal_rule"] == "rejected")
        #expect(row["rejected_by"] == "token:peter")
        #expect(throws: ExtensionProblem.self) {
            try bench.extensions().approve(request, by: ExtensionBench.peter)
        }
        #expect(try bench.extend(ExtensionBench.wish(days: 3)).outcome == .accepted)
    }

    @Test func theRulesOfApprovalAreThoseOfTheConfiguration() {
        var settings = ExtensionSettings()
        func rule(
            _ days: Int,
            _ reason: ExtensionReason,
            used: Int = 0,
            mass: Bool = false
        )
            -> String?
        {
            settings.approvalRule(days: days, reason: reason, used: used, isMass: mass)
        }
        #expect(rule(90, .other, used: 1, mass: true) == nil)
        settings.approvesOverDays = 14
        settings.approvesReasons = [.undeclared]
        settings.approvesSecondUse = true
        settings.approvesMass = true
        #expect(rule(14, .other) == nil)
        #expect(rule(15, .other) == "days_over_14")
        #expect(rule(1, .undeclared) == "reason_undeclared")
        #expect(rule(1, .other, used: 1) == "second_use")
        #expect(rule(1, .other, mass: true) == "mass")
        settings.approvesAlways = true
        #expect(rule(1, .other) == "always")
    }

    /// The evidence of our own events says what their rows say, and gives the same fact.
    @Test func theEvidenceSaysWhatTheRowsSay() throws {
        let bench = try bench()
        let request = try bench.extend(
            ExtensionBench.wish { $0.justification = "“quotes” \"and\" \\ \n lines" }
        ).request
        _ = try bench.extensions().approve(request, by: ExtensionBench.peter)
        let reader = LogReader(bench.log.connection)
        let key = try #require(try reader.keys(ofStream: "1000").first)
        let facts = try reader.facts(of: key)
        var seen = 0
        for event in try reader.events(of: key) where ExtensionNote.exists(for: event.kind) {
            let evidence = try #require(try reader.evidence(of: event))
            let note = try #require(try ExtensionNote(evidence: evidence.received))
            let fact = try FactSource.current.fact(evidence)
            #expect(fact == facts.first { $0.position == event.position }?.fact)
            let rows = try ExtensionNote.rows(
                isRequest: event.kind == .extensionRequested,
                where: "n.position = $1",
                [.int(event.position)],
                bench.log.connection
            )
            var bare = note
            bare[text: "body"] = nil
            #expect(rows.map(\.note) == [bare], "\(event.kind)")
            seen += 1
        }
        #expect(seen == 4)
    }
}

import Ledger
import Postgres
import Schema
import TestSupport
import Testing

@testable import EventLog

@Suite(.serialized) struct CrashTests {
    private static let beforeCommit = AppendStep.allCases.filter {
        ![.committed, .referencesWritten, .keysForeseen].contains($0)
    }

    /// The session dies between two steps, as with a killed process: nothing of the batch stays.
    @Test(arguments: beforeCommit)
    func aSessionThatDiesBetweenTwoStepsLeavesNothing(_ step: AppendStep) throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        _ = try log.appender().append(Sample.notifications(5, prefix: "60"))
        let before = try LogReader(log.connect()).head()

        let connection = try log.connect(as: LogDatabase.roles.appender)
        let process = try connection.query("select pg_backend_pid()").int(0, 0) ?? 0
        let appender = try Appender(connection)
        let conflicting = Sample.notification(stream: "600", uuid: "60-0", content: "other")
        appender.step = { reached in
            guard reached == step else { return }
            try log.connect().query("select pg_terminate_backend($1, 5000)", [.int(process)])
        }
        let events = Sample.notifications(20) + [conflicting]
        let error = #expect(throws: EventLogError.self) { try appender.append(events) }
        // Only a COMMIT whose answer did not come leaves a doubt.
        #expect(error?.code == (step == .conflictsInserted ? .unknownOutcome : .unavailable))
        #expect(try LogReader(log.connect()).head() == before)
        #expect(try log.count("select count(*) from ledger.conflict") == 0)
        #expect(try log.count("select count(*) from ledger.mark where stream like '70%'") == 0)
        #expect(try log.problems() == [])

        // The same events over a new session: none is lost, none is there twice.
        let outcomes = try log.appender().append(events)
        #expect(outcomes.dropLast().compactMap(\.position) == (6...25).map(\.self))
        #expect(try log.problems() == [])
    }

    /// COMMIT took effect but its answer was lost: the caller sends again and the keys decide.
    @Test func aCommitWithoutAnAnswerIsSettledByTheKeys() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let appender = try log.appender()
        struct Lost: Error {}
        appender.step = { if $0 == .committed { throw Lost() } }
        let events = Sample.notifications(10)
        #expect(throws: EventLogError.self) { try appender.append(events) }
        let outcomes = try log.appender().append(events)
        #expect(outcomes == (1...10).map { .duplicate(position: $0) })
        #expect(try log.problems() == [])
    }

    /// What append returned is there after a power cut; the rest is there whole or not at all.
    @Test func whatWasAnsweredSurvivesACrashOfTheServer() throws {
        let server = TestServer.forCrashes()
        let log = try LogDatabase(on: server)
        defer { log.stayAlive() }
        let appender = try log.appender()
        _ = try appender.append(Sample.notifications(50))
        let answered = try LogReader(log.connect()).head()
        appender.step = { step in
            // The appender takes an error of a step for its own, so it is looked at here.
            if step == .batchInserted {
                #expect(throws: Never.self) { try server.crashAndRestart() }
            }
        }
        #expect(throws: EventLogError.self) {
            try appender.append(Sample.notifications(50, prefix: "80"))
        }
        #expect(try LogReader(log.connect()).head() == answered)
        #expect(try log.problems() == [])
    }
}

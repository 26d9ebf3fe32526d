import EventLog
import Ledger
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import LedgerService

/// What is left where a program ends in the middle of an extension, and how it is settled.
struct ExtensionCrashTests {
    private struct Crash: Error {}

    private func crash(_ bench: ExtensionBench, at step: ExtensionPause) throws {
        let extensions = try bench.extensions()
        extensions.pause = { if $0 == step { throw Crash() } }
        #expect(throws: Crash.self) {
            try extensions.request(ExtensionBench.wish(), by: ExtensionBench.olga)
        }
    }

    private func outcome(_ bench: ExtensionBench) throws -> String? {
        try bench.audit().first?["outcome"]
    }

    @Test(arguments: ExtensionPause.allCases, [CounterpartApple.Manner.does, .losesTheRequest])
    func aCrashAtAnyStepLosesNothingAndExtendsOnce(
        _ step: ExtensionPause,
        _ manner: CounterpartApple.Manner
    ) throws {
        let bench = try ExtensionBench()
        try bench.buy()
        bench.apple.manner.withLock { $0 = manner }
        try crash(bench, at: step)
        let isDone = manner == .does && [.answered, .recorded].contains(step)
        switch step {
        case .refreshed, .decided:
            #expect(try bench.audit().isEmpty)
            return
        case .requested, .answered: #expect(try outcome(bench) == "unknown")
        case .recorded: #expect(try outcome(bench) == (isDone ? "accepted" : "unknown"))
        }
        // Another request meanwhile is refused, and an unknown one uses the budget up.
        if try outcome(bench) == "unknown" {
            bench.now = LogFixture.day(10.01)
            let second = try bench.extend(ExtensionBench.wish(ticket: "SUP-2"))
            #expect(second.rule == "extension_in_progress")
        }
        bench.apple.manner.withLock { $0 = .does }
        bench.now = LogFixture.day(10.5)
        let request = try #require(
            try bench.audit().first?["request_identifier"].flatMap { UniqueID($0) }
        )
        let settled = try bench.extensions().resolve(request, by: ExtensionBench.olga)
        #expect([.accepted, .confirmed].contains(settled.outcome))
        #expect(bench.apple.books.withLock { $0["1000"]?.expiresDate } == LogFixture.day(37))
        // Sent again only where it had not been done, and then under the same identifier.
        let orders = bench.apple.orders.withLock { $0 }
        #expect(Set(orders.map(\.request)) == [request])
        #expect(orders.count == (isDone ? 1 : step == .requested ? 1 : 2))
    }

    @Test func aLostAnswerIsSettledByReadingTheSubscription() throws {
        let bench = try ExtensionBench()
        try bench.buy()
        bench.apple.manner.withLock { $0 = .losesTheAnswer }
        let result = try bench.extend()
        #expect(result.outcome == .unknown)
        #expect(result.detail == "reset by peer")
        bench.now = LogFixture.day(10.001)
        let settled = try bench.extensions().resolve(result.request, by: ExtensionBench.olga)
        #expect(settled.outcome == .confirmed)
        #expect(bench.apple.orders.withLock { $0.count } == 1)
        // The notice that comes later belongs to it and is no second extension.
        bench.now = LogFixture.day(10.002)
        try bench.apple.notify("1000")
        #expect(try bench.audit().map { $0["outcome"] } == ["confirmed"])
    }

    @Test func aServersErrorSaysNothingOfWhatWasDone() throws {
        let bench = try ExtensionBench()
        try bench.buy()
        bench.apple.manner.withLock { $0 = .failsAfterwards }
        let result = try bench.extend()
        #expect(result.outcome == .unknown)
        #expect(result.httpStatus == 500)
    }

    @Test func whatWasNotDoneIsSentOnceMoreAfterAWaitAndThenAPersonDecides() throws {
        let bench = try ExtensionBench()
        try bench.buy()
        bench.apple.manner.withLock { $0 = .losesTheRequest }
        let request = try bench.extend().request
        let sent = bench.now
        func resolve(_ decision: ExtensionStep.Resolution? = nil) throws -> ExtensionResult {
            try bench.extensions().resolve(
                request,
                by: ExtensionBench.peter,
                decision: decision,
                note: decision == nil ? nil : "asked Apple"
            )
        }
        bench.now = sent.adding(.minutes(14))
        #expect(throws: ExtensionProblem.tooEarly(sent.adding(.minutes(15)))) { try resolve() }
        #expect(throws: ExtensionProblem.self) { try resolve(.notExtended) }
        bench.now = sent.adding(.minutes(15))
        #expect(try resolve().outcome == .unknown)
        bench.now = sent.adding(.minutes(60))
        #expect(throws: ExtensionProblem.needsDecision) { try resolve() }
        #expect(bench.apple.orders.withLock { $0.count } == 2)
        #expect(Set(bench.apple.orders.withLock { $0.map(\.request) }) == [request])
        #expect(try resolve(.notExtended).resolution == .notExtended)
        let row = try #require(try bench.audit().first)
        #expect(row["outcome"] == "unknown")
        #expect(row["resolution"] == "not_extended")
        #expect(row["resolved_by"] == "token:peter")
        #expect(row["counts_from"] == nil)
        #expect(row["attempt"] == "2")
        // It stands in nobody's way any more.
        bench.apple.manner.withLock { $0 = .does }
        #expect(try bench.extend(ExtensionBench.wish(ticket: "SUP-2")).outcome == .accepted)
    }
}

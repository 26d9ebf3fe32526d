import Crypto
import EventLog
import Ledger
import Postgres
import Synchronization
import Testing

@testable import LedgerService

/// A guardian's withdrawn consent reaches every subscription of the customer, whenever either of
/// them is told.
@Suite struct WithdrawalTests {
    private let log: LogFixture

    init() throws {
        log = try LogFixture()
        // Whoever waits for a lock of a frozen one fails, instead of waiting for ever.
        try log.connection.execute("set lock_timeout = '2s'")
    }

    /// The first month of a subscription of a customer.
    private func purchase(_ stream: String, of customer: UInt64) -> NewEvent {
        log.event(
            stream,
            "\(stream)-purchase",
            .subscribed,
            .initialBuy,
            at: LogFixture.t0,
            LogFixture.month((UInt64(stream) ?? 0) * 100) {
                $0.appTransactionID = AppleID(customer)
            },
            LogFixture.renewal()
        )
    }

    /// A withdrawal, signed that many days after the purchases.
    private func withdrawal(of customer: UInt64, day: Double) -> NewEvent {
        let received = Array("consent of \(customer) on \(day)".utf8)
        var event = NewEvent(
            app: log.app,
            stream: "app:\(log.app.bundleID)",
            eventKey: "n:consent-\(customer)-\(day)",
            kind: .notification,
            notificationType: "RESCIND_CONSENT",
            signedAt: LogFixture.day(day),
            received: received,
            form: .raw,
            contentDigest: SHA256.digest(received)
        )
        event.rescindsConsentOf = AppleID(customer)
        return event
    }

    /// Who is served on a day, by stream.
    private func served(on day: Double) throws -> [String] {
        let rows = try log.connection.query(
            """
            select stream from read_model.entitlement_interval
            where generation = (
                    select generation from read_model.current where projection = 'entitlement')
                and valid_from <= $1 and $1 < valid_until and entitled
            order by stream
            """,
            [.instant(milliseconds: LogFixture.day(day).milliseconds)]
        )
        return (0..<rows.count).map { rows.text($0, 0) ?? "" }
    }

    /// What is shown is what a fold of the whole log makes, and nothing waits.
    private func expectRight() throws {
        #expect(try log.count("ledger.mark") == 0)
        #expect(try log.digests(foldingUpTo: log.head()) == log.liveDigests())
    }

    private func project() throws { try Projector(log.connection).project() }

    @Test func allSubscriptionsOfTheCustomerAreSuspendedFromThenOnAndNobodyElses() throws {
        try log.append([purchase("71", of: 1), purchase("72", of: 1), purchase("73", of: 2)])
        try project()
        #expect(try served(on: 15) == ["71", "72", "73"])
        let before = try log.head()
        let then = try log.liveDigests()
        try log.append([withdrawal(of: 1, day: 10)])
        try project()
        #expect(try served(on: 9) == ["71", "72", "73"])
        #expect(try served(on: 15) == ["73"])
        try expectRight()
        // What was known before is what a prefix of the log says.
        #expect(try log.digests(foldingUpTo: before) == then)
    }

    @Test func aPurchaseToldAfterTheWithdrawalIsSuspendedToo() throws {
        try log.append([withdrawal(of: 1, day: 10)])
        try project()
        try log.append([purchase("71", of: 1)])
        try project()
        #expect(try served(on: 15) == [])
        #expect(try served(on: 5) == ["71"])
        try expectRight()
    }

    /// The fold of a subscription is under way, for the first time or not, when the withdrawal
    /// comes: either it reads it, or the withdrawal's mark finds the subscription.
    @Test(arguments: ProjectorStep.allCases)
    func aWithdrawalInTheMiddleOfAFoldIsNeverMissed(_ step: ProjectorStep) throws {
        try log.append([purchase("71", of: 1)])
        let late = withdrawal(of: 1, day: 10)
        let first = Projector(log.connection)
        var isAppended = false
        first.step = { [log] reached in
            guard reached == step, !isAppended else { return }
            isAppended = true
            try log.append([late])
            // Another one takes the withdrawal up at once, while the subscription is held.
            try Projector(log.connect()).project()
            #expect(try log.count("ledger.mark where stream = '71' and position = 2") == 1)
        }
        try first.project(shouldStop: { isAppended })
        #expect(isAppended)
        // The first one ended its own marks, not that of what it may not have seen.
        #expect(try log.count("ledger.mark where stream = '71' and position = 2") == 1)
        try project()
        #expect(try served(on: 15) == [])
        try expectRight()
    }

    /// The withdrawal is being spread when the customer's first purchase is told.
    @Test(arguments: ProjectorStep.allCases)
    func aPurchaseInTheMiddleOfAWithdrawalIsNeverMissed(_ step: ProjectorStep) throws {
        try log.append([withdrawal(of: 1, day: 10)])
        let late = purchase("71", of: 1)
        let first = Projector(log.connection)
        var isAppended = false
        first.step = { [log] reached in
            guard reached == step, !isAppended else { return }
            isAppended = true
            try log.append([late])
            try Projector(log.connect()).project()
        }
        try first.project(shouldStop: { isAppended })
        #expect(isAppended)
        try project()
        #expect(try served(on: 15) == [])
        try expectRight()
    }

    @Test func aRebuildMakesTheSameRowsAndFindsWhatComesMeanwhile() throws {
        try log.append([purchase("71", of: 1), purchase("72", of: 2), withdrawal(of: 1, day: 10)])
        try project()
        let live = try log.liveDigests()
        _ = try Rebuild(connect: log.connect).run()
        #expect(try log.liveDigests() == live)

        let late = withdrawal(of: 2, day: 12)
        let isAppended = Atomic<Bool>(false)
        let failure = Mutex<String?>(nil)
        let connect = log.connect
        _ = try Rebuild(connect: connect).run(progress: { progress in
            guard progress.phase == .keys, !isAppended.exchange(true, ordering: .relaxed) else {
                return
            }
            do { _ = try Appender(connect(), limit: .bulk).append([late]) } catch {
                failure.withLock { $0 = "\(error)" }
            }
        })
        #expect(failure.withLock { $0 } == nil)
        let isTold = isAppended.load(ordering: .relaxed)
        #expect(isTold)
        #expect(try served(on: 15) == [])
        // Its mark is still there; the fold that it asks for changes nothing any more.
        let rebuilt = try log.liveDigests()
        try project()
        #expect(try log.liveDigests() == rebuilt)
        try expectRight()
    }

    @Test func theExplanationNamesTheWithdrawal() throws {
        try log.append([purchase("71", of: 1), withdrawal(of: 1, day: 10)])
        try project()
        let found = try Explanation.explanations(
            of: "71",
            at: LogFixture.day(15),
            log.connection
        )
        let explanation = try #require(found.first)
        let answer = try #require(explanation.answer)
        #expect(answer.state == "active")
        #expect(answer.entitledApple)
        #expect(!answer.entitled)
        #expect(answer.positions.contains(2))
        #expect(explanation.text.contains("because of #2 RESCIND_CONSENT"))
    }
}

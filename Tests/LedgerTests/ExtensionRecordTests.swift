import Testing

@testable import Ledger

/// What becomes of requests to extend, by the events of one subscription alone.
struct ExtensionRecordTests {
    private static let request = UniqueID(bits: 0xE1)
    private static let end = Life.day(30)

    /// A paid month from T0 on.
    private static func life() -> Life {
        var life = Life()
        life.notify(
            .subscribed,
            .initialBuy,
            at: Life.t0,
            Life.transaction(1, from: Life.t0, until: end) { $0.storefront = "DEU" },
            Life.renewal()
        )
        return life
    }

    private static func step(
        _ kind: EventKind,
        at day: Double,
        detail: Int32 = 0,
        until: Timestamp? = nil,
        answer: ExtensionAnswer? = nil,
        request: UniqueID = request
    ) -> Fact {
        let isApple = kind == .extensionAnswered
        var fact = Fact(
            kind: kind,
            provenance: isApple ? .tls : .operator,
            factAt: Life.day(day)
        )
        fact.extensionStep = ExtensionStep(request: request, detail: detail, until: until)
        fact.extensionAnswer = answer
        return fact
    }

    /// The request of so many days and that it was sent.
    private static func ask(
        _ days: Int32 = 7,
        at day: Double = 10,
        before: Timestamp = end,
        request: UniqueID = request,
        isSent: Bool = true
    ) -> [Fact] {
        let asked = step(
            .extensionRequested,
            at: day,
            detail: days,
            until: before.adding(.days(Int64(days))),
            request: request
        )
        let sent = step(.extensionSubmitted, at: day, detail: 1, request: request)
        return isSent ? [asked, sent] : [asked]
    }

    private static func yes(_ days: Int64 = 7, at day: Double = 10.01) -> Fact {
        step(
            .extensionAnswered,
            at: day,
            detail: 1,
            answer: ExtensionAnswer(success: true, effectiveDate: end.adding(.days(days)))
        )
    }

    private static func extended(
        _ life: inout Life,
        to end: Timestamp,
        at day: Double = 10.02,
        id: UInt64 = 1
    ) {
        life.notify(
            .renewalExtended,
            at: Life.day(day),
            Life.transaction(id, from: Life.t0, until: end) { $0.storefront = "DEU" },
            Life.renewal()
        )
    }

    private static func record(
        _ facts: [Fact],
        _ change: (inout Life) -> Void = { _ in }
    )
        -> [ExtensionRecord]
    {
        var life = life()
        for fact in facts { life.add(fact) }
        change(&life)
        var reversed = Life()
        for event in life.events.reversed() { reversed.add(event.fact) }
        let records = life.history.extensions
        // Positions differ by arrival; nothing else may.
        #expect(
            reversed.history.extensions.map(\.withoutPositions) == records.map(\.withoutPositions)
        )
        return records
    }

    @Test func aSubscriptionWithoutExtensionsHasNoRecord() {
        #expect(Self.record([]).isEmpty)
    }

    @Test func aRequestThatWasNotSentWaitsAndCounts() throws {
        let record = try #require(Self.record(Self.ask(isSent: false)).first)
        #expect(record.outcome == .requested)
        #expect(record.isOpen)
        #expect(record.countsFrom == Life.day(10))
        #expect(record.expiresBefore == Self.end)
        #expect(record.expiresBeforePosition == 1)
        #expect(record.stateBefore == .active)
        #expect(record.productID == "gold.month")
    }

    @Test(arguments: [EventKind.extensionRefused, .extensionRejected])
    func whatNeverLeftCountsNothing(_ kind: EventKind) throws {
        let facts = Self.ask(isSent: false) + [Self.step(kind, at: 10.5)]
        let record = try #require(Self.record(facts).first)
        #expect(record.outcome == .refusedLocally)
        #expect(!record.isOpen)
        #expect(record.countsFrom == nil)
    }

    @Test func whatWasSentWithoutAnAnswerIsUnknownAndCounts() throws {
        let record = try #require(Self.record(Self.ask()).first)
        #expect(record.outcome == .unknown)
        #expect(record.isOpen)
        #expect(record.countsFrom == Life.day(10))
        let told = Self.ask() + [Self.step(.extensionUnanswered, at: 10.1, detail: 1)]
        #expect(Self.record(told).first?.outcome == .unknown)
    }

    @Test func applesRefusalCountsNothing() throws {
        let no = Self.step(
            .extensionAnswered,
            at: 10.1,
            detail: 1,
            answer: ExtensionAnswer(success: false, effectiveDate: nil)
        )
        let record = try #require(Self.record(Self.ask() + [no]).first)
        #expect(record.outcome == .refusedByApple)
        #expect(record.countsFrom == nil)
    }

    @Test func anAnswerIsAcceptedUntilApplesSignatureConfirmsIt() throws {
        let facts = Self.ask() + [Self.yes()]
        let record = try #require(Self.record(facts).first)
        #expect(record.outcome == .accepted)
        #expect(record.expiresAcked == Life.day(37))
        #expect(record.gained == .days(7))
        let signed = Self.record(facts) { Self.extended(&$0, to: Life.day(37)) }
        #expect(signed.map(\.outcome) == [.confirmed])
        #expect(signed[0].confirmed == .init(position: 5, at: Life.day(10.02)))
        #expect(signed[0].expiresConfirmed == Life.day(37))
        #expect(signed[0].stateAfter == .active)
        #expect(signed[0].positions == [1, 2, 3, 4, 5])
    }

    /// Without the notification any transaction that has the promised end confirms it.
    @Test func anySignedTransactionWithThePromisedEndConfirms() {
        let records = Self.record(Self.ask() + [Self.yes()]) { life in
            life.notify(
                .didChangeRenewalStatus,
                .autoRenewDisabled,
                at: Life.day(12),
                Life.transaction(1, from: Life.t0, until: Life.day(37))
            )
        }
        #expect(records.map(\.outcome) == [.confirmed])
        #expect(records[0].confirmed?.at == Life.day(12))
    }

    @Test func anotherSignedEndContradictsTheAnswer() {
        let records = Self.record(Self.ask() + [Self.yes()]) {
            Self.extended(&$0, to: Life.day(36))
        }
        #expect(records.map(\.outcome) == [.contradicted])
        #expect(records[0].expiresConfirmed == Life.day(36))
        #expect(records[0].countsFrom == Life.day(10.02))
        let unmoved = Self.record(Self.ask() + [Self.yes()]) { life in
            life.notify(
                .didChangeRenewalStatus,
                .autoRenewDisabled,
                at: Life.day(12),
                Life.transaction(1, from: Life.t0, until: Self.end)
            )
        }
        #expect(unmoved.map(\.outcome) == [.contradicted])
    }

    @Test func aLostAnswerIsConfirmedByTheEndThatWasAskedFor() {
        let records = Self.record(Self.ask()) { Self.extended(&$0, to: Life.day(37)) }
        #expect(records.map(\.outcome) == [.confirmed])
        #expect(records[0].attempts == 1)
    }

    @Test func anotherEndAfterALostAnswerIsNotOurs() {
        let records = Self.record(Self.ask()) { Self.extended(&$0, to: Life.day(40)) }
        #expect(records.map(\.outcome) == [.unknown, .external])
        #expect(records[1].expiresBefore == Self.end)
        #expect(records[1].gained == .days(10))
        #expect(records[1].storefront == "DEU")
        #expect(records.allSatisfy { $0.countsFrom != nil })
    }

    @Test func whatNobodyAskedForIsExternal() throws {
        let records = Self.record([]) { Self.extended(&$0, to: Life.day(44)) }
        #expect(records.map(\.outcome) == [.external])
        #expect(records[0].request == nil)
        #expect(records[0].expiresBeforePosition == 1)
        #expect(records[0].stateBefore == .active)
        #expect(records[0].countsFrom == Life.day(10.02))
    }

    @Test func twoRequestsAndTwoNoticesBelongTogetherByTheirEnds() {
        let second = UniqueID(bits: 0xE2)
        let facts =
            Self.ask() + [Self.yes()]
            + Self.ask(3, at: 20, before: Life.day(37), request: second)
        let records = Self.record(facts) {
            Self.extended(&$0, to: Life.day(40), at: 20.1)
            Self.extended(&$0, to: Life.day(37), at: 10.1)
        }
        #expect(records.map(\.outcome) == [.confirmed, .confirmed])
        #expect(records.map(\.expiresConfirmed) == [Life.day(37), Life.day(40)])
        #expect(records.map(\.request) == [Self.request, second])
    }

    @Test(arguments: [
        (ExtensionStep.Resolution.extended, ExtensionRecord.Outcome.accepted, true),
        (.notExtended, .unknown, false),
    ])
    func anUnknownOneIsSettledByWhatWasRead(
        _ resolution: ExtensionStep.Resolution,
        _ outcome: ExtensionRecord.Outcome,
        _ counts: Bool
    ) throws {
        let settled = Self.step(.extensionResolved, at: 11, detail: resolution.rawValue)
        let record = try #require(Self.record(Self.ask() + [settled]).first)
        #expect(record.outcome == outcome)
        #expect(!record.isOpen)
        #expect((record.countsFrom != nil) == counts)
    }

    @Test func aSecondAttemptsAnswerOutranksTheSilenceBefore() throws {
        let facts =
            Self.ask() + [
                Self.step(.extensionUnanswered, at: 10.1, detail: 1),
                Self.step(.extensionSubmitted, at: 10.2, detail: 2),
                Self.yes(at: 10.3),
            ]
        let record = try #require(Self.record(facts).first)
        #expect(record.outcome == .accepted)
        #expect(record.attempts == 2)
        #expect(record.submitted?.at == Life.day(10))
    }

    /// The same notice told twice, by a delivery and by the notification history, is one.
    @Test func aNoticeToldTwiceIsOneExtension() {
        let records = Self.record([]) {
            Self.extended(&$0, to: Life.day(44))
            Self.extended(&$0, to: Life.day(44))
        }
        #expect(records.count == 1)
    }
}

extension ExtensionRecord {
    fileprivate var withoutPositions: ExtensionRecord {
        func bare(_ step: Step?) -> Step? { step.map { Step(position: 0, at: $0.at) } }
        var copy = self
        copy.requested = bare(requested)
        copy.refused = bare(refused)
        copy.approved = bare(approved)
        copy.rejected = bare(rejected)
        copy.submitted = bare(submitted)
        copy.answered = bare(answered)
        copy.resolved = bare(resolved)
        copy.confirmed = bare(confirmed)
        copy.expiresBeforePosition = expiresBeforePosition == 0 ? 0 : 1
        return copy
    }
}

import Testing

@testable import Ledger

/// What a record of an extension says beside its outcome, and what belongs to which request.
@Suite struct ExtensionDetailTests {
    private static let request = UniqueID(bits: 0xE1)
    private static let owner = UniqueID(bits: 0xA1)
    private static let end = Life.day(30)

    private static func month(
        until: Timestamp = end,
        change: (inout TransactionFact) -> Void = { _ in }
    ) -> TransactionFact {
        Life.transaction(1, from: Life.t0, until: until) {
            $0.storefront = "DEU"
            $0.webOrderLineItemID = AppleID(500)
            $0.ownership = .familyShared
            $0.appAccountToken = owner
            change(&$0)
        }
    }

    private static func life(_ facts: Fact...) -> Life {
        var life = Life()
        life.notify(.subscribed, .initialBuy, at: Life.t0, month(), Life.renewal())
        for fact in facts { life.add(fact) }
        return life
    }

    private static func step(
        _ kind: EventKind,
        _ day: Double,
        detail: Int32 = 0,
        until: Timestamp? = nil,
        answer: ExtensionAnswer? = nil
    ) -> Fact {
        var fact = Fact(kind: kind, provenance: .operator, factAt: Life.day(day))
        fact.extensionStep = ExtensionStep(request: request, detail: detail, until: until)
        fact.extensionAnswer = answer
        return fact
    }

    private static let asked = step(
        .extensionRequested,
        10,
        detail: 7,
        until: end.adding(.days(7))
    )
    private static let promise = ExtensionAnswer(success: true, effectiveDate: end.adding(.days(7)))

    private static func days(_ steps: ExtensionRecord.Step?...) -> [Int64?] {
        steps.map { $0.map { ($0.at.milliseconds - Life.t0.milliseconds) / 86_400_000 } }
    }

    @Test func everyStepStandsInTheRecordWithTheFirstTimeThatItWasTold() throws {
        let life = Self.life(
            Self.step(.extensionApproved, 12),
            Self.step(.extensionApproved, 11),
            Self.asked,
            Self.step(.extensionSubmitted, 14, detail: 2),
            Self.step(.extensionSubmitted, 13, detail: 1),
            Self.step(.extensionUnanswered, 15, detail: 2),
            Self.step(.extensionResolved, 17, detail: ExtensionStep.Resolution.extended.rawValue),
            Self.step(.extensionResolved, 16, detail: ExtensionStep.Resolution.extended.rawValue)
        )
        let record = try #require(life.history.extensions.first)
        #expect(life.history.extensions.count == 1)
        #expect(
            Self.days(record.requested, record.approved, record.submitted, record.answered)
                == [10, 11, 13, 15]
        )
        #expect(Self.days(record.resolved, record.refused, record.rejected) == [16, nil, nil])
        #expect(record.attempts == 2)
        #expect(record.daysRequested == 7)
        #expect(record.resolution == .extended)
        #expect(record.outcome == .accepted)
        #expect(!record.isMass)
        #expect(record.at == Life.day(10))
    }

    @Test func whatItIsAboutComesFromTheTransaction() throws {
        var life = Self.life(Self.asked, Self.step(.extensionSubmitted, 10.1, detail: 1))
        let before = try #require(life.history.extensions.first)
        #expect(before.transactionID == AppleID(1))
        #expect(before.webOrderLineItemID == AppleID(500))
        #expect(before.productID == "gold.month")
        #expect(before.storefront == "DEU")
        #expect(before.ownership == .familyShared)
        #expect(before.owner == Self.owner)
        #expect(before.stateAfter == nil)
        #expect(before.expiresBefore == Self.end)
        // Once Apple signed it, that version tells.
        life.notify(
            .renewalExtended,
            at: Life.day(10.2),
            Self.month(until: Life.day(37)) { $0.storefront = "FRA" },
            Life.renewal()
        )
        let after = try #require(life.history.extensions.first)
        #expect(after.storefront == "FRA")
        #expect(after.stateAfter == .active)
        #expect(after.expiresBeforePosition == 1)
        #expect(after.confirmed?.position == 4)
    }

    /// The state is that of the instant before the request: a lapse that it answers shows.
    @Test func theStateBeforeIsThatBeforeTheRequest() throws {
        let late = Self.step(.extensionRequested, 30, detail: 7, until: Life.day(37))
        #expect(Self.life(late).history.extensions.first?.stateBefore == .active)
        let later = Self.step(.extensionRequested, 40, detail: 7, until: Life.day(37))
        #expect(Self.life(later).history.extensions.first?.stateBefore == .expired(.presumed))
        let early = Self.step(.extensionRequested, 0, detail: 7, until: Life.day(37))
        #expect(Self.life(early).history.extensions.first?.stateBefore == nil)
    }

    /// Lifecycle 2.4, `RENEWAL_EXTENSION` / `FAILURE`: a mass call failed for this subscription.
    @Test(arguments: [1, 2])
    func whatAMassExtensionCouldNotDoIsARefusalOfApples(_ times: Int) throws {
        var life = Self.life()
        for _ in 0..<times {
            life.notify(.renewalExtension, .failure, at: Life.day(12), Self.month())
        }
        life.notify(.consumptionRequest, at: Life.day(14), Self.month())
        #expect(life.history.extensions.count == 1)
        let record = try #require(life.history.extensions.first)
        #expect(record.outcome == .refusedByApple)
        #expect(record.request == nil)
        #expect(record.at == Life.day(12))
        #expect(record.answered?.at == Life.day(12))
        #expect(record.answered?.position == 2)
        #expect(record.expiresBefore == Self.end)
        #expect(record.expiresBeforePosition == 2)
        #expect(record.countsFrom == nil)
        #expect(record.storefront == "DEU")
        #expect(record.stateBefore == .active)
        // A summary tells nothing of one subscription.
        var summary = Self.life()
        summary.notify(.renewalExtension, .summary, at: Life.day(12), Self.month())
        #expect(summary.history.extensions.isEmpty)
    }

    @Test func aMassRequestIsARecordThatNoTransactionConfirms() throws {
        var life = Self.life(
            Self.step(.massExtensionRequested, 10, detail: 7, until: Life.day(37)),
            Self.step(.massExtensionApproved, 11),
            Self.step(.massExtensionSubmitted, 12, detail: 1),
            Self.step(.massExtensionAnswered, 13, detail: 1, answer: Self.promise)
        )
        let record = try #require(life.history.extensions.first)
        #expect(record.isMass)
        #expect(record.outcome == .accepted)
        #expect(
            Self.days(record.requested, record.approved, record.submitted, record.answered)
                == [10, 11, 12, 13]
        )
        life.notify(.renewalExtended, at: Life.day(14), Self.month(until: Life.day(37)))
        #expect(life.history.extensions.map(\.outcome) == [.accepted, .external])
        let rejected = Self.life(
            Self.step(.massExtensionRequested, 10, detail: 7),
            Self.step(.massExtensionRejected, 11)
        )
        #expect(rejected.history.extensions.map(\.outcome) == [.refusedLocally])
        #expect(Self.days(rejected.history.extensions.first?.rejected) == [11])
        let silent = Self.life(
            Self.step(.massExtensionRequested, 10, detail: 7),
            Self.step(.massExtensionSubmitted, 11, detail: 1),
            Self.step(.massExtensionUnanswered, 12, detail: 1)
        )
        #expect(silent.history.extensions.map(\.outcome) == [.unknown])
        #expect(Self.days(silent.history.extensions.first?.answered) == [12])
    }

    /// An answer that says what was done outranks silence, then the later attempt counts.
    @Test func theAnswerOfTheLastAttemptThatSaysSomethingCounts() throws {
        func record(_ answers: Fact...) -> ExtensionRecord? {
            var life = Self.life(Self.asked, Self.step(.extensionSubmitted, 10.1, detail: 1))
            for answer in answers { life.add(answer) }
            return life.history.extensions.first
        }
        func answer(_ day: Double, _ attempt: Int32, _ success: Bool?) -> Fact {
            let kind: EventKind = success == nil ? .extensionUnanswered : .extensionAnswered
            let date = success == true ? Life.day(37) : nil
            return Self.step(
                kind,
                day,
                detail: attempt,
                answer: success.map { ExtensionAnswer(success: $0, effectiveDate: date) }
            )
        }
        #expect(record(answer(11, 1, false), answer(12, 2, true))?.outcome == .accepted)
        #expect(record(answer(12, 1, false), answer(11, 2, true))?.outcome == .accepted)
        #expect(record(answer(11, 1, true), answer(12, 2, false))?.outcome == .refusedByApple)
        #expect(record(answer(11, 1, true), answer(12, 1, false))?.outcome == .refusedByApple)
        #expect(record(answer(11, 1, false), answer(12, 2, nil))?.outcome == .refusedByApple)
        #expect(record(answer(11, 1, nil))?.outcome == .unknown)
        #expect(record(answer(11, 1, false))?.expiresAcked == nil)
        #expect(record(answer(11, 1, true))?.expiresAcked == Life.day(37))
    }

    /// Only what was signed after it was sent can be its effect.
    @Test func anEndThatWasSignedBeforeTheRequestWasSentConfirmsNothing() {
        func outcomes(signedOn day: Double) -> [ExtensionRecord.Outcome] {
            var life = Self.life(Self.asked, Self.step(.extensionSubmitted, 12, detail: 1))
            life.notify(
                .didChangeRenewalStatus,
                .autoRenewDisabled,
                at: Life.day(day),
                Self.month(until: Life.day(37)),
                NotificationRow.off
            )
            return life.history.extensions.map(\.outcome)
        }
        #expect(outcomes(signedOn: 11) == [.unknown])
        #expect(outcomes(signedOn: 12) == [.unknown])
        #expect(outcomes(signedOn: 12.1) == [.confirmed])
    }

    /// What Apple signed for another transaction contradicts no answer.
    @Test func onlyTheSameTransactionContradictsAnAnswer() {
        func outcomes(
            _ other: TransactionFact,
            _ type: NotificationType,
            day: Double = 13
        )
            -> [ExtensionRecord.Outcome]
        {
            var life = Self.life(
                Self.asked,
                Self.step(.extensionSubmitted, 11, detail: 1),
                Self.step(.extensionAnswered, 12, detail: 1, answer: Self.promise)
            )
            life.notify(type, at: Life.day(day), other, Life.renewal())
            return life.history.extensions.map(\.outcome)
        }
        let next = NotificationRow.month(2, 30, 60, reason: .renewal)
        #expect(outcomes(next, .didRenew) == [.accepted])
        #expect(outcomes(Self.month(), .consumptionRequest) == [.contradicted])
        #expect(outcomes(Self.month(), .consumptionRequest, day: 12) == [.accepted])
        #expect(outcomes(Self.month(until: Life.day(35)), .renewalExtended) == [.contradicted])
        let second = Life.transaction(2, from: Life.t0, until: Life.day(44))
        #expect(outcomes(second, .renewalExtended) == [.accepted, .external])
    }

    /// Two versions before: the last that said another end is what was extended.
    @Test func anExtensionNobodyAskedForNamesTheEndBeforeIt() throws {
        var life = Self.life()
        life.notify(.renewalExtended, at: Life.day(10), Self.month(until: Life.day(35)))
        life.notify(.consumptionRequest, at: Life.day(12), Self.month(until: Life.day(35)))
        life.notify(.renewalExtended, at: Life.day(20), Self.month(until: Life.day(44)))
        let records = life.history.extensions
        #expect(records.map(\.outcome) == [.external, .external])
        #expect(records.map(\.expiresBefore) == [Self.end, Life.day(35)])
        #expect(records.map(\.expiresBeforePosition) == [1, 3])
        #expect(records.map(\.expiresConfirmed) == [Life.day(35), Life.day(44)])
        #expect(records.map(\.at) == [Life.day(10), Life.day(20)])
    }

    /// Only what Apple signed confirms, and only a request that it may belong to.
    @Test func aReceiptConfirmsNothingAndARefusalIsNotConfirmedByOthers() {
        var told = Self.life(Self.asked, Self.step(.extensionSubmitted, 11, detail: 1))
        var receipt = Fact(kind: .receipt, provenance: .receipt, factAt: Life.day(15))
        receipt.transaction = Self.month(until: Life.day(37))
        receipt.transaction?.signedDate = Life.day(15)
        told.add(receipt)
        #expect(told.history.extensions.map(\.outcome) == [.unknown])
        let no = ExtensionAnswer(success: false, effectiveDate: nil)
        var refused = Self.life(
            Self.asked,
            Self.step(.extensionSubmitted, 11, detail: 1),
            Self.step(.extensionAnswered, 12, detail: 1, answer: no)
        )
        #expect(refused.history.extensions.first?.stateAfter == nil)
        refused.notify(.renewalExtended, at: Life.day(15), Self.month(until: Life.day(37)))
        #expect(refused.history.extensions.map(\.outcome) == [.refusedByApple, .external])
        var local = Self.life(Self.asked, Self.step(.extensionRefused, 11))
        #expect(Self.days(local.history.extensions.first?.refused) == [11])
        local.notify(.renewalExtended, at: Life.day(15), Self.month(until: Life.day(37)))
        #expect(local.history.extensions.map(\.outcome) == [.refusedLocally, .external])
        let accepted = Self.life(
            Self.asked,
            Self.step(.extensionSubmitted, 11, detail: 1),
            Self.step(.extensionAnswered, 12, detail: 1, answer: Self.promise)
        )
        #expect(accepted.history.extensions.first?.stateAfter == .active)
    }
}

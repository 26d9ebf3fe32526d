import Testing

@testable import Ledger

/// Which version an extension is about where several transactions, or several versions, would do.
@Suite struct ExtensionTieTests {
    private typealias Row = NotificationRow
    private static let request = UniqueID(bits: 0xE2)

    private static func paid(owner: UniqueID? = nil) -> Life {
        var life = Life()
        let month = Row.month { $0.appAccountToken = owner }
        life.notify(.subscribed, .initialBuy, at: Life.t0, month, Life.renewal())
        return life
    }

    private static func step(
        _ kind: EventKind,
        _ day: Double,
        detail: Int32,
        answer: ExtensionAnswer? = nil
    ) -> Fact {
        var fact = Fact(kind: kind, provenance: .operator, factAt: Life.day(day))
        fact.extensionStep = ExtensionStep(request: request, detail: detail, until: Life.day(37))
        fact.extensionAnswer = answer
        return fact
    }

    /// An extension to day 37 that was asked for on day 10 and promised on day 12.
    private static func promised() -> Life {
        var life = paid()
        life.add(step(.extensionRequested, 10, detail: 7))
        life.add(step(.extensionSubmitted, 11, detail: 1))
        let answer = ExtensionAnswer(success: true, effectiveDate: Life.day(37))
        life.add(step(.extensionAnswered, 12, detail: 1, answer: answer))
        return life
    }

    /// Seats that were added end with the period; what is extended is the purchase all the same.
    @Test func theEndBeforeAnExtensionIsThatOfTheSameTransaction() throws {
        var life = Self.paid()
        life.notify(
            .didChangeRenewalPref,
            .increaseQuantity,
            at: Life.day(5),
            Row.month(2, 5, 30) { $0.additionalReason = "SEAT_ADDITION" }
        )
        life.notify(.renewalExtended, at: Life.day(10), Row.month(1, 0, 37))
        let record = try #require(life.history.extensions.first)
        #expect(record.expiresBefore == Life.day(30))
        #expect(record.expiresBeforePosition == 1)
    }

    /// Of two versions signed in one millisecond neither is what was before the other.
    @Test func aVersionSignedTogetherWithAnExtensionIsNotTheOneBeforeIt() throws {
        var life = Self.paid()
        life.notify(.renewalExtended, at: Life.day(10), Row.month(1, 0, 37))
        life.read(at: Life.day(10), Row.month(1, 0, 33))
        let record = try #require(life.history.extensions.first)
        #expect(record.outcome == .external)
        #expect(record.expiresBefore == Life.day(30))
    }

    /// Apple's notice of another end contradicts the answer, also where the transaction was told of
    /// before it.
    @Test func theNoticeContradictsAnAnswerRatherThanAVersionThatCameFirst() throws {
        var life = Self.promised()
        life.read(at: Life.day(13), Row.month(1, 0, 33))
        life.notify(.renewalExtended, at: Life.day(14), Row.month(1, 0, 35))
        #expect(life.history.extensions.map(\.outcome) == [.contradicted])
        let record = try #require(life.history.extensions.first)
        #expect(record.confirmed?.at == Life.day(14))
        #expect(record.expiresConfirmed == Life.day(35))
    }

    /// A notice contradicts one answer only, and none that came with it or later.
    @Test func aNoticeThatIsNoNewerThanTheAnswerContradictsNothing() {
        for (day, outcomes) in [
            (11.5, [ExtensionRecord.Outcome.accepted, .external]), (12, [.accepted, .external]),
            (12.5, [.contradicted]),
        ] {
            var life = Self.promised()
            life.notify(.renewalExtended, at: Life.day(day), Row.month(1, 0, 35))
            #expect(life.history.extensions.map(\.outcome) == outcomes, "day \(day)")
        }
    }

    /// Two answers, one notice of another end: it belongs to the request that came first.
    @Test func aNoticeThatBelongsToOneRequestContradictsNoOther() {
        var life = Self.promised()
        let other = UniqueID(bits: 0xE3)
        for (kind, day, detail) in [
            (EventKind.extensionRequested, 20.0, Int32(7)), (.extensionSubmitted, 21, 1),
            (.extensionAnswered, 22, 1),
        ] {
            var fact = Fact(kind: kind, provenance: .operator, factAt: Life.day(day))
            fact.extensionStep = ExtensionStep(request: other, detail: detail, until: Life.day(37))
            if kind == .extensionAnswered {
                fact.extensionAnswer = ExtensionAnswer(success: true, effectiveDate: Life.day(37))
            }
            life.add(fact)
        }
        life.notify(.renewalExtended, at: Life.day(23), Row.month(1, 0, 35))
        life.notify(.renewalExtended, at: Life.day(24), Row.month(1, 0, 36))
        let records = life.history.extensions
        #expect(records.map(\.outcome) == [.contradicted, .contradicted])
        #expect(records.map(\.expiresConfirmed) == [Life.day(35), Life.day(36)])
    }

    /// The log may begin with the notice of an extension, signed as the period begins.
    @Test func theStateAfterAnExtensionIsThatOfItsOwnInstant() throws {
        var life = Life()
        life.notify(.renewalExtended, at: Life.t0, Row.month(1, 0, 37))
        let record = try #require(life.history.extensions.first)
        #expect(record.stateBefore == nil)
        #expect(record.stateAfter == .active)
    }

    /// Lifecycle 4.7: ownership is a history of its own; a request is the owner's of its instant.
    @Test func anExtensionBelongsToTheOwnerOfItsInstant() {
        let (first, second) = (UniqueID(bits: 0xA1), UniqueID(bits: 0xA2))
        for (day, owner) in [(0.0, first), (10, first), (15, second), (20, second)] {
            var life = Self.paid(owner: first)
            life.read(at: Life.day(15), Row.month { $0.appAccountToken = second })
            life.add(Self.step(.extensionRequested, day, detail: 7))
            #expect(life.history.extensions.map(\.owner) == [owner], "day \(day)")
        }
    }
}

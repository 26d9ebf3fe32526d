import Testing

@testable import Ledger

/// What the registers of one subscription add up to where there is much in them, or little.
@Suite struct RegisterTests {
    private typealias Row = NotificationRow

    private static func day(_ instant: Timestamp?) -> Double? {
        instant.map { Double($0.milliseconds - Life.t0.milliseconds) / 86_400_000 }
    }

    // MARK: Transactions

    /// Past 24 transactions a dictionary finds them.
    @Test(arguments: [22, 23, 24, 25, 26, 40])
    func eachTransactionIsKnownAgainHoweverManyThereAre(_ count: Int) {
        var life = Life()
        for number in 0..<count {
            let from = Double(number) * 30
            let month = Row.month(UInt64(number + 1), from, from + 30, reason: .renewal)
            life.notify(.didRenew, at: Life.day(from), month, Life.renewal())
            // Told again before the next one comes.
            life.notify(.consumptionRequest, at: Life.day(from + 1), month)
        }
        #expect(life.history.charges.count == count)
        for number in 0..<count {
            let from = Double(number) * 30
            let month = Row.month(UInt64(number + 1), from, from + 30, reason: .renewal)
            life.read(at: Life.day(10_000), month)
        }
        #expect(life.history.charges.count == count)
        #expect(life.history.charges.map(\.position).min() == Int64(2 * count + 1))
    }

    /// Apple's client and its server were seen to number one purchase differently.
    @Test func onePurchaseUnderTwoNumbersIsOneWhateverComesAfterIt() {
        var life = Life()
        func month(_ id: UInt64, _ from: Double, line: UInt64?) -> TransactionFact {
            Row.month(id, from, from + 30, reason: .renewal) {
                $0.webOrderLineItemID = line.map { AppleID($0) }
            }
        }
        for (id, from, line) in [
            (1, 0.0, 500), (2, 30, 501), (3, 30, 501), (4, 60, 502), (5, 90, 503), (6, 90, 503),
            (7, 120, nil), (8, 150, 505),
        ] as [(UInt64, Double, UInt64?)] {
            life.notify(
                .didRenew,
                at: Life.day(from + Double(id) / 10),
                month(id, from, line: line)
            )
        }
        #expect(life.history.charges.map { Self.day($0.from) } == [0, 30, 60, 90, 120, 150])
        #expect(life.history.timeline.filter { $0.state == .active }.count == 6)
    }

    @Test func theSameOrderLineAtAnotherStartIsAnotherPeriod() {
        var life = Life()
        for (id, from) in [(1, 0.0), (2, 30), (3, 60)] as [(UInt64, Double)] {
            life.notify(
                .didRenew,
                at: Life.day(from),
                Row.month(id, from, from + 30) { $0.webOrderLineItemID = AppleID(500) }
            )
        }
        #expect(life.history.charges.count == 3)
    }

    /// Seats that are bought together with a period stay a charge of their own.
    @Test func addedSeatsAreNoSecondNumberOfThePurchase() {
        var life = Life()
        let line: (inout TransactionFact) -> Void = { $0.webOrderLineItemID = AppleID(500) }
        life.notify(.subscribed, at: Life.t0, Row.month(change: line))
        life.notify(
            .didChangeRenewalPref,
            at: Life.day(1),
            Row.month(2) {
                line(&$0)
                $0.additionalReason = "SEAT_ADDITION"
            }
        )
        #expect(life.history.charges.map(\.isAdditional).count { $0 } == 1)
        #expect(life.history.charges.count == 2)
    }

    /// What is bought and over in one instant takes up no time.
    @Test func aPeriodWithoutLengthIsNoStretchOfTheTimeline() {
        var life = Life()
        life.notify(.subscribed, at: Life.t0, Row.month(1, 0, 0), Life.renewal())
        life.notify(.didRenew, at: Life.day(1), Row.month(2, 1, 31, reason: .renewal))
        #expect(life.history.charges.count == 2)
        #expect(
            life.history.timeline.allSatisfy { interval in
                interval.until.map { interval.from < $0 } ?? true
            }
        )
        #expect(life.at(Life.t0)?.state == .expired(.presumed), "nothing follows from it")
    }

    // MARK: Refunds

    @Test func aRefundThatIsUndoneNamesTheTimeThatItStood() throws {
        func reversal(
            _ revoked: Double,
            undone: Double,
            from start: Double? = 0
        ) throws -> RefundReversal {
            var life = Life()
            let month = Row.month { $0.purchaseDate = start.map(Life.day) }
            var refunded = month
            refunded.revocationDate = Life.day(revoked)
            refunded.revocationPercentage = 40_000
            refunded.digest = Life.digest(of: refunded)
            life.notify(.refund, at: Life.day(10), refunded)
            life.notify(.refundReversed, at: Life.day(undone), month)
            #expect(life.history.reversals.count == 1)
            return try #require(life.history.reversals.first)
        }
        let plain = try reversal(9, undone: 12)
        #expect(Self.day(plain.revokedAt) == 9 && Self.day(plain.reversedAt) == 12)
        #expect(plain.revocationPercentage == 40_000)
        #expect(plain.refundPosition == 1 && plain.position == 2)
        // It never took effect before the period began, nor did it end before it began.
        #expect(try Self.day(reversal(9, undone: 30, from: 20).revokedAt) == 20)
        #expect(try Self.day(reversal(15, undone: 12).reversedAt) == 15)
        #expect(try Self.day(reversal(9, undone: 12, from: nil).revokedAt) == 9)
    }

    /// Lifecycle 1.2: the number of refunded seats grows; told again it is no other refund.
    @Test func eachNumberOfRefundedSeatsIsOneRefund() {
        var life = Life()
        for (day, seats) in [(1.0, nil), (2, 2), (3, 2), (4, 5), (5, 5)] as [(Double, Int32?)] {
            life.notify(
                .refund,
                .seats,
                at: Life.day(day),
                Row.month { $0.revokedSeatQuantity = seats }
            )
        }
        #expect(life.history.seatRefunds.map(\.seats) == [2, 5])
        #expect(life.history.seatRefunds.map(\.position) == [2, 4])
        #expect(life.history.seatRefunds.map { Self.day($0.at) } == [2, 4])
    }

    // MARK: Renewal info and status

    /// Lifecycle 0, rule 2: an older signature that arrives later is history, not news.
    @Test func olderRenewalInfoInANewerEventChangesNothing() {
        var life = Life()
        life.notify(.subscribed, at: Life.t0, Row.month(), Row.off)
        var fact = Fact(kind: .notification, provenance: .jws, factAt: Life.day(2))
        fact.renewal = Life.renewal()
        fact.renewal?.signedDate = Life.day(-1)
        life.add(fact)
        #expect(life.at(Life.day(10))?.renewalIntent == .off)
        #expect(life.history.latestRenewal?.autoRenewStatus == 0)
    }

    /// Renewal info is in force from when its whole event was signed; the newest counts.
    @Test func renewalInfoOfALateEnvelopeDoesNotHideNewerOne() {
        var life = Life()
        life.notify(.subscribed, at: Life.t0, Row.month())
        var late = Fact(kind: .notification, provenance: .jws, factAt: Life.day(0.5))
        late.signedAt = Life.day(2)
        late.renewal = Row.off
        late.renewal?.signedDate = Life.day(0.5)
        life.add(late)
        life.notify(.consumptionRequest, at: Life.day(1), Row.month(), Life.renewal())
        #expect(life.at(Life.day(0.9))?.renewalIntent == .unknown)
        #expect(life.at(Life.day(1.5))?.renewalIntent == .on)
        #expect(life.at(Life.day(5))?.renewalIntent == .on)
    }

    /// 5.3: of two that were signed together the one with the later `renewalDate` counts, whichever
    /// event carries more.
    @Test(arguments: [(60.0, 50.0, RenewalIntent.off), (50, 60, .on)])
    func ofTwoRenewalInfosOfOneInstantTheLaterRenewalDateCounts(
        _ alone: Double,
        _ together: Double,
        _ intent: RenewalIntent
    ) {
        var life = Life()
        var renewal = Row.off
        renewal.renewalDate = Life.day(alone)
        life.read(at: Life.t0, nil, renewal)
        renewal = Life.renewal { $0.renewalDate = Life.day(together) }
        life.notify(.subscribed, at: Life.t0, Row.month(), renewal)
        #expect(life.at(Life.day(10))?.renewalIntent == intent)
        #expect(life.history.latestRenewal?.autoRenewStatus == (intent == .on ? 1 : 0))
    }

    /// What Apple signed outranks what it did not, however old.
    @Test func anUnsignedRenewalInfoNeverCountsBesideASignedOne() {
        var life = Life()
        var unsigned = Fact(kind: .subscriptionStatus, provenance: .tls, factAt: Life.t0)
        unsigned.renewal = Life.renewal()
        unsigned.renewal?.signedDate = Life.day(5)
        life.add(unsigned)
        life.notify(.subscribed, at: Life.day(1), Row.month(), Row.off)
        #expect(life.at(Life.day(10))?.renewalIntent == .off)
        #expect(life.history.latestRenewal?.autoRenewStatus == 0)
    }

    @Test func ofTwoStatusesOfOneInstantTheLaterInTheOrderIsTheLatest() {
        for statuses in [[1, 2], [2, 1]] as [[Int32]] {
            var life = Life()
            for status in statuses { life.read(at: Life.day(1), status: status, Row.month()) }
            #expect(life.history.latestStatus == 2)
        }
    }

    // MARK: Extensions that Apple only answered

    private static func answer(_ day: Double, until: Double = 37) -> Fact {
        var fact = Fact(kind: .extensionAnswered, provenance: .tls, factAt: Life.day(day))
        fact.extensionAnswer = ExtensionAnswer(success: true, effectiveDate: Life.day(until))
        return fact
    }

    /// The promise counts until Apple signs something after it.
    @Test(arguments: [(11.0, true), (12, true), (13, false)])
    func aPromisedEndCountsUntilATransactionIsSignedAfterIt(_ signed: Double, _ counts: Bool) {
        var life = Life()
        life.notify(.subscribed, at: Life.t0, Row.month(), Life.renewal())
        life.add(Self.answer(12))
        life.read(at: Life.day(signed), Row.month())
        #expect((life.at(Life.day(35))?.state == .active) == counts)
        #expect((life.at(Life.day(35))?.confidence == .provisional) == counts)
        #expect(life.at(Life.day(29))?.confidence == .confirmed)
        #expect((life.at(Life.day(35))?.deciding.marker == 2) == counts)
    }

    @Test func aPromisedEndCountsForWhatOnlyAReceiptTold() {
        var life = Life()
        life.read(at: Life.day(1), Row.month(), provenance: .receipt)
        life.add(Self.answer(12))
        #expect(life.at(Life.day(35))?.state == .active)
        #expect(life.at(Life.day(35))?.confidence == .provisional)
    }
}

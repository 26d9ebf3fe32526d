import Testing

@testable import Ledger

/// Streams far longer than any that Apple writes.
@Suite struct LongStreamTests {
    @Test func aLongStreamIsFoldedInOneGo() {
        var life = Life()
        for month in 0..<5000 {
            let from = Life.day(Double(month))
            life.notify(
                .didRenew,
                at: from,
                Life.transaction(
                    UInt64(month + 1),
                    from: from,
                    until: from.adding(.days(1)),
                    reason: .renewal
                ),
                Life.renewal()
            )
            life.notify(
                .didChangeRenewalStatus,
                .autoRenewDisabled,
                at: from.adding(.hours(1)),
                nil,
                Life.renewal { $0.autoRenewStatus = Int32(month % 2) }
            )
        }
        let history = life.history
        #expect(history.timeline.count > 5000)
        #expect(history.knownToPosition == 10_000)
    }

    /// A year from each of some starts on, of which some are seats or taken back.
    private static func periods(
        _ count: Int = 10_000,
        minutesApart: Int,
        _ change: (Int, inout TransactionFact) -> Void
    ) -> [Period] {
        var life = Life()
        let year = Life.transaction(1, from: Life.t0, until: Life.day(365))
        for number in 0..<count {
            var fact = year
            fact.transactionID = AppleID(UInt64(number + 1))
            fact.digest = UInt64(number)
            fact.signedDate = Life.t0.adding(.minutes(Int64(number * minutesApart)))
            fact.purchaseDate = fact.signedDate
            fact.expiresDate = Life.day(365).adding(.hours(Int64(number)))
            change(number, &fact)
            life.notify(.subscribed, at: fact.signedDate, fact)
        }
        return life.events.indices.map {
            Period(life.events, $0)
        }
        .sorted(by: Period.precedes)
    }

    @Test(arguments: [0, 1])
    func manyTransactionsOfOneTimeAreEachLookedAtAFewTimes(_ minutesApart: Int) {
        let changes: [(Int, inout TransactionFact) -> Void] = [
            // Seats, some of them taken back.
            { number, fact in
                if number > 0 { fact.additionalReason = "SEAT_ADDITION" }
                if number % 3 == 0 { fact.revocationDate = Life.day(100) }
            },
            // Purchases, each of which supersedes the ones before it.
            { _, _ in },
            { number, fact in
                if number % 2 == 0 {
                    fact.revocationDate = Life.day(200).adding(.hours(Int64(number)))
                }
            },
        ]
        for (kind, change) in changes.enumerated() {
            let periods = Self.periods(minutesApart: minutesApart, change)
            var coverage = Coverage()
            coverage.compute(periods)
            let segments = coverage.segments.count
            #expect(segments > 0, "kind \(kind)")
            #expect(coverage.looks >= periods.count, "kind \(kind)")
            #expect(coverage.looks < 12 * periods.count, "kind \(kind): \(coverage.looks)")
        }
    }

    @Test func manyPurchasesUnderTwoNumbersBecomeOneEach() {
        var life = Life()
        let month = Life.transaction(1, from: Life.t0, until: Life.day(30))
        for number in 0..<10_000 {
            var fact = month
            fact.transactionID = AppleID(UInt64(number + 1))
            fact.webOrderLineItemID = AppleID(UInt64(number % 5000 + 1))
            fact.quantity = Int32(number)
            fact.digest = UInt64(number)
            fact.signedDate = Life.t0.adding(.hours(Int64(number)))
            life.notify(.subscribed, at: fact.signedDate, fact)
        }
        let charges = life.history.charges
        #expect(charges.count == 5000)
        // The version that was signed last counts.
        #expect(Set(charges.map(\.quantity)) == Set(5000..<10_000))
    }

    @Test func manySeatsAreTakenBackOneByOne() {
        var life = Life()
        let count = 5000
        let year = Life.transaction(1, from: Life.t0, until: Life.day(365))
        for number in 0..<(2 * count) {
            let isRevoked = number >= count
            var fact = year
            fact.transactionID = AppleID(UInt64(number % count + 1))
            fact.digest = UInt64(number)
            fact.signedDate = Life.t0.adding(.minutes(Int64(number)))
            if number % count > 0 { fact.additionalReason = "SEAT_ADDITION" }
            if isRevoked { fact.revocationDate = Life.day(300) }
            life.notify(isRevoked ? .refund : .subscribed, at: fact.signedDate, fact)
        }
        let history = life.history
        #expect(history.transitions.map(\.to) == [.active, .revoked(.refund)])
        #expect(history.transitions.last?.position == Int64(2 * count))
    }

    @Test func aRevokedPurchaseOfNoLengthHoldsTheTimeFromItsStartWhateverElseThereIs() {
        func segments(withOldRevocation isThere: Bool) -> [ClosedRange<Timestamp>] {
            var life = Life()
            func add(_ id: UInt64, _ from: Double, _ until: Double, revoked: Double? = nil) {
                let fact = Life.transaction(id, from: Life.day(from), until: Life.day(until)) {
                    $0.revocationDate = revoked.map { Life.day($0) }
                }
                life.notify(.subscribed, at: fact.signedDate, fact)
            }
            add(1, 0, 5, revoked: isThere ? 40 : nil)
            add(2, 10, 60)
            add(3, 20, 20, revoked: 50)
            let periods = life.events.indices.map { Period(life.events, $0) }
            var coverage = Coverage()
            coverage.compute(periods.sorted(by: Period.precedes))
            return coverage.segments.indices.map {
                coverage.segments[$0].from...coverage.segments[$0].to
            }
        }
        let expected = [
            Life.day(0)...Life.day(5), Life.day(10)...Life.day(20), Life.day(50)...Life.day(60),
        ]
        #expect(segments(withOldRevocation: true) == expected)
        #expect(segments(withOldRevocation: false) == expected)
    }

    /// Each status disagrees, so that each asks what was signed by then.
    @Test(arguments: [500, 2000])
    func manyStatusesThatDisagreeAreEachComparedWithAFewThings(_ count: Int) {
        var life = Life()
        for number in 0..<count {
            let from = Life.day(Double(number))
            var fact = Life.transaction(
                UInt64(number + 1),
                from: from,
                until: from.adding(.days(1)),
                reason: .renewal
            )
            life.notify(.didRenew, at: from, status: 3, fact, Life.renewal())
            fact.revocationDate = from.adding(.hours(20))
            fact.digest += 1
            let refunded = from.adding(.hours(20))
            life.notify(.refund, at: refunded, status: 4, fact, Life.renewal())
            // A failure and its end, told of the day before.
            life.notify(
                .didFailToRenew,
                at: from.adding(.hours(22)),
                status: 1,
                nil,
                Life.renewal()
            )
            if number % 3 == 0 {
                fact.revocationDate = nil
                fact.digest -= 1
                let undone = from.adding(.hours(23))
                life.notify(.refundReversed, at: undone, status: 2, fact, Life.renewal())
            }
        }
        let history = life.history
        var check = StatusCheck()
        var compared = history
        compared.anomalies = []
        Registers.lend(life.events) { check.note($0, in: &compared) }
        let noted = history.anomalies.filter { $0.kind == .statusDisagrees }
        #expect(noted == compared.anomalies)
        #expect(noted.count > count)
        #expect(check.looks > count)
        #expect(check.looks < 30 * count, "\(check.looks)")
    }
}

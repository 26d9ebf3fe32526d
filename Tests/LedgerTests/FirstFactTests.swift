import Testing

@testable import Ledger

/// The steps of the state machine where little is known: first facts, missing dates, grace without
/// a date.
@Suite struct FirstFactTests {
    private typealias Row = NotificationRow

    private static func steps(_ life: Life) -> [SubscriptionState] {
        life.history.transitions.map(\.to)
    }

    /// The log may begin in the midst of a life: Apple's status tells what the period does not.
    @Test(
        arguments: [
            (nil, SubscriptionState.expired(.other)), (1, .active), (2, .expired(.other)),
            (3, .billingRetry), (4, .gracePeriod), (9, .expired(.other)),
        ] as [(Int32?, SubscriptionState)]
    )
    func aPeriodThatIsOverWhenItIsFirstReadIsWhatItsStatusSays(
        _ status: Int32?,
        _ state: SubscriptionState
    ) {
        var life = Life()
        life.read(at: Life.day(40), status: status, Row.month())
        #expect(Self.steps(life) == [state])
    }

    @Test(arguments: [(29.9, SubscriptionState.active), (30, .expired(.other))])
    func aPeriodCoversUpToItsEnd(_ day: Double, _ state: SubscriptionState) {
        var life = Life()
        life.read(at: Life.day(day), Row.month())
        #expect(Self.steps(life) == [state])
        // Added seats that are read first tell the same.
        var seats = Life()
        seats.read(at: Life.day(day), Row.month { $0.additionalReason = "SEAT_ADDITION" })
        #expect(Self.steps(seats) == [state])
    }

    @Test func aPeriodWithoutAnEndCoversNothing() {
        var life = Life()
        life.read(at: Life.day(1), Row.month { $0.expiresDate = nil })
        #expect(Self.steps(life) == [.expired(.other)])
        // The same period with its end is news.
        life.read(at: Life.day(2), Row.month())
        #expect(Self.steps(life) == [.expired(.other), .active])
    }

    /// A transaction without its start began before all others.
    @Test func aPeriodWithoutAStartIsOlderThanAnyOther() {
        var life = Life()
        life.read(at: Life.day(40), Row.month { $0.purchaseDate = nil })
        life.notify(.refund, at: Life.day(41), Row.month(2) { $0.revocationDate = Life.day(41) })
        #expect(Self.steps(life) == [.expired(.other), .revoked(.refund)])
    }

    /// The sandbox reports renewals after their end: the report says that the period was.
    @Test func theReportOfAPeriodIsAStepToActiveThoughItIsOver() {
        for (type, subtype) in [
            (NotificationType.subscribed, nil), (.didRenew, nil), (.didRenew, .billingRecovery),
            (.didChangeRenewalPref, .upgrade),
        ] as [(NotificationType, Subtype?)] {
            var life = Life()
            life.notify(type, subtype, at: Life.day(40), Row.month())
            #expect(Self.steps(life) == [.active])
        }
        // Not where it was taken back meanwhile.
        var refunded = Life()
        refunded.notify(.didRenew, at: Life.day(40), Row.month { $0.revocationDate = Life.day(9) })
        #expect(Self.steps(refunded) == [.revoked(.refund)])
    }

    @Test func aRecoveryAndARenewalAreNotTheSame() {
        #expect(Trigger(.didRenew, .billingRecovery) == .recovered)
        #expect(Trigger(.didRenew, nil) == .renewed)
        #expect(Trigger(.didChangeRenewalPref, .upgrade) == .planChanged)
        #expect(Trigger(.didChangeRenewalPref, .downgrade) == .intentChanged)
        #expect(Trigger(.didFailToRenew, .gracePeriod) == .failedWithGrace)
        #expect(Trigger(.didFailToRenew, nil) == .failed)
        #expect(Trigger(.refund, .seats) == .seatsRefunded)
        #expect(Trigger(.refund, nil) == .refunded)
    }

    /// Grace is over where renewal info in retry carries a date that is past, and not before.
    @Test(
        arguments: [
            (nil, [SubscriptionState.gracePeriod]), (46.1, [.gracePeriod]),
            (46, [.gracePeriod, .billingRetry]), (45, [.gracePeriod, .billingRetry]),
        ] as [(Double?, [SubscriptionState])]
    )
    func graceEndsByADateThatIsPast(_ until: Double?, _ steps: [SubscriptionState]) {
        var life = Life()
        life.notify(.didFailToRenew, .gracePeriod, at: Life.day(30), Row.month())
        life.read(at: Life.day(46), Row.month(), Row.failing(graceUntil: until))
        #expect(Self.steps(life) == steps)
    }

    // MARK: Oddities

    /// Subtype and intent disagree only where both are there.
    @Test(arguments: [(nil, false), (1, false), (2, true)] as [(Int32?, Bool)])
    func anExpiryWhoseIntentSaysOtherwiseIsOdd(_ intent: Int32?, _ isOdd: Bool) {
        var life = Life()
        life.notify(.subscribed, at: Life.t0, Row.month(), Life.renewal())
        life.notify(
            .expired,
            .voluntary,
            at: Life.day(30),
            Row.month(),
            intent.map { intent in Life.renewal { $0.expirationIntent = intent } }
        )
        #expect(life.history.anomalies.map(\.kind) == (isOdd ? [.causeDisagrees] : []))
    }

    /// Only where products are configured is one that is not odd.
    @Test func aProductThatIsNotConfiguredIsOdd() {
        for (product, configured, isOdd) in [
            ("gold.month", ["gold.month"], false), ("gold.year", ["gold.month"], true),
            ("gold.year", [], false),
        ] as [(Symbol, [Symbol], Bool)] {
            var life = Life()
            for name in configured {
                life.rules.products[name] = ProductRules(groupID: "g", level: 1, period: .oneMonth)
            }
            life.notify(.subscribed, at: Life.t0, Row.month(1, 0, 30, product), Life.renewal())
            let odd = life.history.anomalies
            #expect(odd == (isOdd ? [Anomaly(kind: .unknownProduct, position: 1)] : []))
        }
    }

    @Test func newsWithoutAnyPeriodMakeNoTimeline() {
        var life = Life()
        life.notify(.didFailToRenew, at: Life.day(1), status: 3, nil, Row.failing())
        #expect(life.history.timeline.isEmpty)
        #expect(life.history.failures.isEmpty)
        #expect(life.history.charges.isEmpty)
        #expect(life.history.latestStatus == 3)
    }
}

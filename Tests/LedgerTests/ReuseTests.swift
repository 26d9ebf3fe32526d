import Testing

@testable import Ledger

/// One fold, and one history, serve many streams in turn: nothing of one shows in the next.
@Suite struct ReuseTests {
    private typealias Row = NotificationRow

    private static func paid(_ change: (inout TransactionFact) -> Void = { _ in }) -> Life {
        var life = Life()
        life.notify(
            .subscribed,
            .initialBuy,
            at: Life.t0,
            Row.month(change: change),
            Life.renewal()
        )
        return life
    }

    /// Each leaves something else behind.
    private static let lives: [(left: String, life: Life)] = [
        ("nothing but a period", paid()),
        ("a later period", later),
        ("a failure with grace", failed),
        ("statuses without renewal info", statuses),
        ("renewal infos that came out of order", outOfOrder),
        ("what a receipt says", receipt),
        ("an answer to an extension", answered),
        ("an extension and its request", extended),
        ("a refund that was undone", reversed),
        ("seats that were refunded", seats),
        ("a refund that was asked for", asked),
        ("many transactions", many),
        ("an owner", paid { $0.appAccountToken = UniqueID(bits: 7) }),
        ("an upgrade that was refunded", upgraded),
        ("facts about no subscription", none),
        ("a cancelled period", cancelled),
    ]

    private static var later: Life {
        var life = Life()
        life.notify(.didRenew, at: Life.day(60), Row.month(9, 60, 90), Life.renewal())
        return life
    }

    private static var failed: Life {
        var life = paid()
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: Life.day(30),
            status: 4,
            Row.month(),
            Row.failing(graceUntil: 46)
        )
        return life
    }

    private static var statuses: Life {
        var life = Life()
        life.notify(.subscribed, at: Life.t0, status: 1, Row.month())
        life.read(at: Life.day(29), status: 2)
        return life
    }

    /// The one that came last is older, so that the other one counts.
    private static var outOfOrder: Life {
        var life = paid()
        life.notify(.consumptionRequest, at: Life.day(3), Row.month(), Row.off)
        var fact = Fact(kind: .notification, provenance: .jws, factAt: Life.day(4))
        fact.renewal = Life.renewal { $0.priceIncreaseStatus = 0 }
        fact.renewal?.signedDate = Life.day(2)
        life.add(fact)
        return life
    }

    private static var receipt: Life {
        var life = Life()
        life.read(at: Life.day(2), Row.month(), Row.off, provenance: .receipt)
        return life
    }

    private static var answered: Life {
        var life = paid()
        var fact = Fact(kind: .extensionAnswered, provenance: .tls, factAt: Life.day(5))
        fact.extensionAnswer = ExtensionAnswer(success: true, effectiveDate: Life.day(37))
        life.add(fact)
        return life
    }

    private static var extended: Life {
        var life = paid()
        var fact = Fact(kind: .extensionRequested, provenance: .operator, factAt: Life.day(5))
        fact.extensionStep = ExtensionStep(
            request: UniqueID(bits: 1),
            detail: 7,
            until: Life.day(37)
        )
        life.add(fact)
        life.notify(.renewalExtended, at: Life.day(6), Row.month(1, 0, 37))
        return life
    }

    private static var reversed: Life {
        var life = paid()
        life.notify(.refund, at: Life.day(9), Row.month { $0.revocationDate = Life.day(9) })
        life.notify(.refundReversed, at: Life.day(12), Row.month())
        return life
    }

    private static var seats: Life {
        var life = paid()
        life.notify(.refund, .seats, at: Life.day(9), Row.month { $0.revokedSeatQuantity = 2 })
        return life
    }

    private static var asked: Life {
        var life = paid()
        life.notify(.consumptionRequest, at: Life.day(9), Row.month())
        return life
    }

    private static var many: Life {
        var life = Life()
        for number in 0..<30 {
            let from = Double(number) * 30
            let month = Row.month(UInt64(number + 1), from, from + 30, reason: .renewal)
            life.notify(.didRenew, at: Life.day(from), month, Life.renewal())
        }
        return life
    }

    private static var upgraded: Life {
        var life = paid()
        life.notify(
            .refund,
            at: Life.day(15),
            Row.month(2, 5, 35, "gold.year") { $0.revocationDate = Life.day(15) }
        )
        return life
    }

    private static var none: Life {
        var life = Life()
        life.notify(
            .oneTimeCharge,
            at: Life.day(1),
            Row.month { $0.productType = .consumable }
        )
        return life
    }

    private static var cancelled: Life {
        var life = paid()
        let end = Life.renewal {
            $0.autoRenewStatus = 0
            $0.expirationIntent = 1
        }
        life.notify(.expired, .voluntary, at: Life.day(30), Row.month(), end)
        return life
    }

    @Test(arguments: lives.indices) func whatAStreamLeftBehindDoesNotShowInTheNext(_ first: Int) {
        var fold = SubscriptionFold(rules: Life().rules)
        var history = History()
        for second in Self.lives.indices {
            fold.fold(Self.lives[first].life.events, into: &history)
            #expect(history == Self.lives[first].life.history)
            fold.fold(Self.lives[second].life.events, into: &history)
            #expect(
                history == Self.lives[second].life.history,
                "\(Self.lives[second].left) after \(Self.lives[first].left)"
            )
        }
        fold.fold([], into: &history)
        #expect(history == History())
    }

    /// Nor does the same stream again, though the fold finds its memory as it left it.
    @Test func eachStreamSaysSomethingElse() {
        #expect(Set(Self.lives.map(\.life.history)).count == Self.lives.count)
    }
}

import AppStoreSimulator
import Testing

/// The simulator plays every row of the lifecycle reference, and the quirks that were seen.
@Suite struct CatalogueTests {
    private static let day: Int64 = 86_400_000
    private static let lives = LifeTests.lives
    private static let notices = lives.flatMap(\.notices)

    @Test func everyRowOfTheCatalogueIsPlayed() {
        var counts: [CatalogueRow: Int] = [:]
        for notice in Self.notices {
            if let row = CatalogueRow(notice) { counts[row, default: 0] += 1 }
        }
        for row in CatalogueRow.all {
            #expect(counts[row, default: 0] >= 4, "\(row) in \(Self.lives.count) lives")
        }
        let others = Set(counts.keys).subtracting(CatalogueRow.all)
        #expect(others.isEmpty, "\(others) are in no catalogue")
    }

    /// How often each rare thing happens at least, so that no test proves something about nothing.
    @Test(arguments: [
        (LifeEvent.familyGranted, 60), (.familyRevoked, 8), (.seatAssigned, 60), (.seatRevoked, 8),
        (.seatsBought, 30), (.seatsAdded, 40), (.seatsRefunded, 10), (.additionRefunded, 20),
        (.migrated, 15), (.itemChanged, 15), (.committed, 150), (.commitmentCancelled, 80),
        (.paidAfterCancelling, 200), (.commitmentEnded, 12), (.commitmentRenewed, 10),
        (.priceAccepted, 40), (.cancelledForPrice, 50), (.offerCode, 60), (.offerDowngraded, 60),
        (.wonBack, 40), (.extended, 40), (.graceDateMissing, 25), (.graceDatePersisted, 25),
        (.crossgradedUnannounced, 80), (.changedUnannounced, 50), (.upgradeReadAgain, 120),
        (.refundedUpgraded, 8), (.tokenReplaced, 60), (.statusRead, 100), (.historyRead, 60),
        (.consumptionRepeated, 60), (.unknownReason, 25), (.unknownOwnership, 20),
    ])
    func rareThingsHappenOftenEnough(_ event: LifeEvent, _ least: Int) {
        let count = Self.lives.reduce(0) { $0 + $1.events.count { $0 == event } }
        #expect(count >= least, "\(event): \(count)")
    }

    @Test func ordinaryLivesDominateByNature() {
        let lives = (0..<2000).map {
            Life(number: $0, seed: 3, from: LifeTests.from, until: LifeTests.until)
        }
        let rare = lives.count { life in
            life.chain.ownership != "PURCHASED" || life.chain.groupID != Catalogue.groupID
                || life.events.contains(.committed) || life.events.contains(.migrated)
        }
        #expect(rare > 100 && rare < 300, "\(rare) of 2000")
        let rareTypes = [
            "ONE_TIME_CHARGE", "PRICE_CHANGE", "METADATA_UPDATE", "MIGRATION", "MIGRATE",
            "RENEWAL_EXTENSION", "EXTERNAL_PURCHASE_TOKEN", "RESCIND_CONSENT", "UNCLAIM_SEATS",
            "TEST", "LOYALTY_CREDIT",
        ]
        let notices = lives.flatMap(\.notices)
        #expect(notices.count { rareTypes.contains($0.type) } < notices.count / 25)
    }

    // MARK: Families, seats, commitments, migrations

    @Test func membersHaveChainsOfTheirOwnWithTheLeadersPeriods() {
        var members = 0
        for (number, life) in Self.lives.enumerated()
        where life.events.contains(.familyGranted) || life.events.contains(.seatAssigned) {
            members += 1
            let leader = Self.lives[number / 4 * 4]
            #expect(life.chain.ownership == "FAMILY_SHARED" || life.chain.ownership == "ASSIGNED")
            #expect(life.chain.appAccountToken == nil)
            #expect(life.chain.appTransactionID != leader.chain.appTransactionID)
            let own = Set(life.notices.compactMap { $0.transaction?.transactionID })
            let others = Set(leader.notices.compactMap { $0.transaction?.transactionID })
            #expect(own.isDisjoint(with: others))
            let periods = Set(leader.notices.compactMap { $0.transaction?.purchaseDate })
            for transaction in life.notices.compactMap(\.transaction) {
                #expect(transaction.price == nil)
                #expect(periods.contains(transaction.purchaseDate))
                if let revocation = transaction.revocation {
                    #expect(["FAMILY_REVOKE", "ASSIGNMENT_REVOKE"].contains(revocation.type))
                }
            }
        }
        #expect(members > 100)
    }

    @Test func seatsAreAddedBesideTheRunningTransaction() {
        var parallel = 0
        for life in Self.lives where life.events.contains(.seatsAdded) {
            let transactions = life.notices.compactMap(\.transaction)
            for added in transactions where added.seats?.additionalReason != nil {
                #expect(added.seats?.additionalReason == "SEAT_ADDITION")
                let base = transactions.contains {
                    $0.seats?.additionalReason == nil && $0.expiresDate == added.expiresDate
                        && $0.purchaseDate < added.purchaseDate && !$0.isUpgraded
                }
                if base { parallel += 1 }
            }
        }
        #expect(parallel > 40)
        let refunds = Self.notices.filter { $0.type == "REFUND" && $0.subtype == "SEATS" }
        for refund in refunds {
            #expect(refund.transaction?.seats?.revoked ?? 0 > 0)
            #expect(refund.transaction?.revocation == nil, "the transaction stays valid")
        }
    }

    @Test func aCommitmentThatWasCancelledIsPaidToItsEnd() {
        var paid = 0
        for life in Self.lives where life.events.contains(.committed) {
            var isCancelled = false
            for notice in life.notices {
                guard let payment = notice.transaction?.commitment,
                    let renewal = notice.renewal?.commitment
                else { continue }
                #expect((1...12).contains(payment.number) && payment.total == 12)
                if notice.type == "DID_RENEW", isCancelled, payment.number > 1 {
                    #expect(renewal.autoRenewStatus == 0)
                    paid += 1
                }
                isCancelled = renewal.autoRenewStatus == 0
                if notice.type == "DID_FAIL_TO_RENEW" {
                    #expect(notice.subtype == nil, "a commitment has no grace")
                    #expect(notice.renewal?.gracePeriodExpiresDate == nil)
                }
            }
        }
        #expect(paid > 200)
        let exhausted = Self.notices.filter {
            $0.type == "EXPIRED" && $0.subtype == "BILLING_RETRY"
                && $0.transaction?.commitment != nil
        }
        #expect(exhausted.count > 5)
        for notice in exhausted {
            let end = notice.transaction?.expiresDate ?? 0
            #expect(notice.signedDate - end > 88 * Self.day)
        }
    }

    @Test func aMigratedSubscriptionGoesOnUnderAnotherChain() {
        var migrated = 0
        for (number, life) in Self.lives.enumerated() where life.events.contains(.migrated) {
            migrated += 1
            let old = Self.lives[number / 4 * 4]
            #expect(life.chain.previousOriginalTransactionID == old.chain.originalTransactionID)
            #expect(life.chain.appAccountToken == old.chain.appAccountToken)
            #expect(["MIGRATION", "MIGRATE"].contains(life.notices[0].type))
            #expect(old.notices.allSatisfy { $0.signedDate < life.notices[0].signedDate })
        }
        #expect(migrated > 10)
    }

    // MARK: Quirks

    @Test func theQuirksThatWereSeenArePlayed() {
        let failures = Self.notices.filter { $0.type == "DID_FAIL_TO_RENEW" }
        let graced = failures.filter { $0.subtype == "GRACE_PERIOD" }
        #expect(graced.contains { $0.renewal?.gracePeriodExpiresDate == nil }, "Q1")
        #expect(
            graced.contains {
                $0.renewal?.gracePeriodExpiresDate != nil
                    && $0.renewal?.isInBillingRetryPeriod == false
            },
            "Q2"
        )
        #expect(
            Self.notices.contains {
                $0.type == "EXPIRED"
                    && $0.renewal?.gracePeriodExpiresDate ?? .max < $0.signedDate
            },
            "Q3"
        )
        #expect(failures.contains { $0.signedDate < $0.transaction?.expiresDate ?? 0 }, "early")
        #expect(
            Self.notices.contains {
                $0.type == "DID_CHANGE_RENEWAL_STATUS" && $0.subtype == nil
                    && $0.renewal?.priceIncreaseStatus == 0
            },
            "cancelled for the price"
        )
        #expect(
            Self.notices.contains { $0.form == .answer && $0.transaction?.isUpgraded == true },
            "Q9"
        )
        #expect(Self.notices.contains { $0.status == 9 })
        #expect(Self.lives.contains { $0.chain.ownership == "ORGANIZATION" })
        let tokens = Self.lives.filter { life in
            Set(life.notices.compactMap { $0.transaction?.appAccountToken }).count > 0
        }
        #expect(tokens.count > 40, "the account token is replaced")
    }

    @Test func aPlanChangesWithoutASubtypeOrWithoutAnyNotification() {
        var newPeriods = 0
        var unannounced = 0
        for life in Self.lives {
            var last: Notice?
            for notice in life.notices where notice.form == .data && notice.isOfSubscription {
                defer { last = notice }
                guard let new = notice.transaction, let old = last?.transaction else { continue }
                if notice.type == "DID_CHANGE_RENEWAL_PREF", notice.subtype == nil,
                    new.transactionID != old.transactionID, new.purchaseDate > old.purchaseDate
                {
                    newPeriods += 1
                }
                let pending = last?.renewal?.autoRenewProductID
                if notice.type == "DID_RENEW", new.productID != pending { unannounced += 1 }
            }
        }
        #expect(newPeriods > 60, "Q7")
        #expect(unannounced > 30, "Q6")
    }

    /// A ledger keeps what it reads a second time once, so the same is never read twice.
    @Test func theServerAPINeverAnswersTheSameTwice() {
        var answered = 0
        for life in Self.lives {
            var seen: Set<Notice> = []
            for var notice in life.notices where notice.form == .answer {
                #expect(
                    notice.type.isEmpty && (notice.transaction == nil) != (notice.renewal == nil)
                )
                notice.uuid = ""
                notice.signedDate = 0
                notice.transaction?.signedDate = 0
                notice.renewal?.signedDate = 0
                #expect(seen.insert(notice).inserted)
                answered += 1
            }
        }
        #expect(answered > 500)
    }
}

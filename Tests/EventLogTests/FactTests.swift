import AppStore
import Ledger
import Postgres
import Schema
import Testing

@testable import EventLog

struct FactTests {
    /// A fact with every member set, so that a swapped column shows.
    static func fullFact() -> Fact {
        func at(_ days: Int64) -> Timestamp {
            Timestamp(milliseconds: 1_700_000_000_000).adding(.days(days))
        }
        var fact = Fact(kind: .notification, provenance: .tls, factAt: at(1))
        fact.notificationType = .didRenew
        fact.subtype = .billingRecovery
        fact.signedAt = at(2)
        fact.status = 4
        fact.extensionAnswer = ExtensionAnswer(success: true, effectiveDate: at(3))
        fact.linkedOwner = UniqueID(bits: 99)
        fact.extensionStep = ExtensionStep(request: UniqueID(bits: 98), detail: 97)
        fact.consumptionRequestReason = .unsatisfiedWithPurchase
        var transaction = TransactionFact(
            transactionID: AppleID("2000000000000001"),
            signedDate: at(4),
            digest: .max
        )
        transaction.webOrderLineItemID = AppleID("007")
        transaction.productID = "gold.month"
        transaction.subscriptionGroupID = "group"
        transaction.productType = .autoRenewable
        transaction.purchaseDate = at(5)
        transaction.originalPurchaseDate = at(6)
        transaction.expiresDate = at(7)
        transaction.quantity = 8
        transaction.ownership = .familyShared
        transaction.reason = .renewal
        transaction.additionalReason = "SEATS"
        transaction.isUpgraded = true
        transaction.revocationDate = at(9)
        transaction.revocationReason = 1
        transaction.revocationType = .refundProrated
        transaction.revocationPercentage = 50_000
        transaction.revokedSeatQuantity = 2
        transaction.offerType = 3
        transaction.offerIdentifier = "offer"
        transaction.offerDiscountType = .payUpFront
        transaction.offerPeriod = "P1M"
        transaction.price = 4_999_000_000
        transaction.currency = "VND"
        transaction.storefront = "VNM"
        transaction.appAccountToken = UniqueID(bits: 1)
        transaction.appTransactionID = AppleID("704")
        transaction.billingPlanType = .monthly
        transaction.commitmentExpiresDate = at(10)
        transaction.billingPeriodNumber = 11
        transaction.totalBillingPeriods = 12
        transaction.previousOriginalTransactionID = AppleID("x-1")
        fact.transaction = transaction
        var renewal = RenewalFact(signedDate: at(13), digest: 14)
        renewal.productID = "gold.month"
        renewal.autoRenewProductID = "silver.month"
        renewal.autoRenewStatus = 1
        renewal.expirationIntent = 2
        renewal.isInBillingRetryPeriod = false
        renewal.gracePeriodExpiresDate = at(15)
        renewal.priceIncreaseStatus = 0
        renewal.renewalDate = at(16)
        renewal.renewalPrice = 17
        renewal.currency = "EUR"
        renewal.recentSubscriptionStartDate = at(18)
        renewal.offerType = 4
        renewal.offerIdentifier = "back"
        renewal.offerDiscountType = OfferDiscountType("NEW")
        renewal.appAccountToken = UniqueID(bits: 2)
        renewal.appTransactionID = AppleID("705")
        renewal.billingPlanType = .billedUpfront
        renewal.commitmentAutoRenewStatus = 0
        renewal.commitmentAutoRenewProductID = "bronze"
        renewal.commitmentRenewalDate = at(19)
        renewal.renewalQuantity = 20
        fact.renewal = renewal
        return fact
    }

    private static func event(_ fact: Fact?, key: String = "n:a") -> NewEvent {
        var event = Sample.event(
            stream: "1",
            key: key,
            received: Array(Sample.jws("{}").utf8)
        )
        event.fact = fact
        return event
    }

    @Test func everyMemberOfAFactComesBack() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let full = Self.fullFact()
        var withoutTransaction = full
        withoutTransaction.transaction = nil
        var withoutRenewal = full
        withoutRenewal.renewal = nil
        let bare = Fact(kind: .receipt, provenance: .receipt, factAt: .latest)
        var request = Fact(kind: .extensionRequested, provenance: .operator, factAt: .latest)
        request.extensionStep = ExtensionStep(
            request: UniqueID(bits: 96),
            detail: 14,
            until: Timestamp(milliseconds: 1_700_000_000_000)
        )
        let facts = [full, withoutTransaction, withoutRenewal, bare, request]
        let events = facts.enumerated().map { Self.event($1, key: "\($0)") }
        _ = try log.appender().append(events)
        let reader = LogReader(try log.connect())
        let key = SubscriptionKey(appID: 1, stream: "1")
        let expected = facts.enumerated().map { Event(position: Int64($0) + 1, fact: $1) }
        #expect(try reader.facts(of: key) == expected)
        var read: [SubscriptionKey: [Event]] = [:]
        for slice in try reader.slices() {
            try reader.forEachStream(in: slice) { read[$0] = $1 }
        }
        #expect(read == [key: expected])
    }

    @Test func theColumnsAreThoseOfTheTable() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let rows = try log.connect().query(
            """
            select attname::text from pg_attribute
            where attrelid = 'ledger.fact'::regclass and attnum > 0 and not attisdropped
            """
        )
        let table = (0..<rows.count).compactMap { rows.text($0, 0) }
        let written = ["position", "decode_anomalies"] + FactColumns.names
        #expect(table.sorted() == written.sorted())
    }

    @Test func streamsComeWholeAndInOrderOfPosition() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        _ = try log.appender().append(Sample.notifications(300))
        _ = try log.appender().append(
            Sample.notifications(300, prefix: "70").map { event in
                var event = event
                event.eventKey += "-later"
                return event
            }
        )
        let reader = LogReader(try log.connect())
        var seen: Set<SubscriptionKey> = []
        var total = 0
        for slice in try reader.slices() {
            try reader.forEachStream(in: slice) { key, events in
                #expect(seen.insert(key).inserted)
                #expect(events.count == 4)
                #expect(events.map(\.position) == events.map(\.position).sorted())
                total += events.count
            }
        }
        #expect(total == 600)
        var early = 0
        for slice in try reader.slices() {
            try reader.forEachStream(in: slice, upTo: 300) { _, events in early += events.count }
        }
        #expect(early == 300)
    }

    /// A slice far larger than the others is divided, and every stream is in one part.
    @Test func aLargeSliceIsReadInStretchesOfWholeStreams() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let connection = try log.connect()
        try connection.execute(
            """
            insert into ledger.app (app_id, bundle_id, environment)
            values (1, 'com.example.app', 'Sandbox');
            insert into ledger.fact (position, app_id, decoder, stream, kind, provenance)
            select row_number() over (), 1, 1, stream, 'notification', 'jws'
            from (
                select 'it''s ' || n as stream, n from generate_series(1, 20000) as n
            ) as streams
            cross join generate_series(1, 3) as e
            where n % 50 = 0
                or satisfies_hash_partition('ledger.fact'::regclass, 32, 5, stream collate "C")
            """
        )
        let reader = LogReader(connection)
        #expect(try reader.stretches().count == 32)
        let parts = try reader.stretches(sizeMin: 8192)
        #expect(parts.count > 34)
        var seen: [String: Int] = [:]
        for part in parts {
            let rows = try connection.query("select distinct stream from \(part.source(upTo: nil))")
            for row in 0..<rows.count { seen[rows.text(row, 0) ?? "", default: 0] += 1 }
        }
        #expect(
            Int64(seen.count) == (try log.count("select count(distinct stream) from ledger.fact"))
        )
        #expect(seen.values.allSatisfy { $0 == 1 })
    }

    /// A row of another decoder is not believed: the event is decoded from its evidence.
    @Test func aRowOfAnotherDecoderIsDecodedFromEvidence() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let event = Sample.notification(stream: "1", uuid: "a")
        let other = Sample.notification(stream: "2", uuid: "b")
        _ = try log.appender().append([event, other])
        try log.connect().execute(
            """
            update ledger.fact set decoder = 32000, product_id = 'wrong' where position = 1
            """
        )
        let reader = LogReader(try log.connect())
        let facts = try reader.facts(of: SubscriptionKey(appID: 1, stream: "1"))
        #expect(facts.map(\.position) == [1])
        #expect(facts.first?.fact.transaction?.productID == "gold.month")
        #expect(facts.first?.fact.renewal?.autoRenewStatus == 1)
        var read: [String: Symbol?] = [:]
        for slice in try reader.slices() {
            try reader.forEachStream(in: slice) { key, events in
                read[key.stream] = events.first?.fact.transaction?.productID
            }
        }
        #expect(read.count == 2)
        #expect(read["1"] == "gold.month")
    }

    @Test func anEventThatCannotBeReadStopsAndIsNamed() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let odd = Sample.event(
            stream: "9",
            key: "n:odd",
            received: Array(Sample.jws("no JSON").utf8)
        )
        _ = try log.appender().append(Sample.notifications(3) + [odd])
        try log.connect().execute("update ledger.fact set decoder = 32000 where position = 4")
        let reader = LogReader(try log.connect())
        let error = #expect(throws: EventLogError.self) {
            for slice in try reader.slices() {
                try reader.forEachStream(in: slice) { _, _ in }
            }
        }
        #expect(error?.code == .unreadable)
        #expect(error?.position == 4)
        #expect(error?.message.contains("9") == true)
    }

    @Test func aStreamMayHaveAnyName() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let names = ["o'brien", "back\\slash", "E'; drop table x; --", "ünïcode", " "]
        for name in names {
            var event = Self.event(Self.fullFact(), key: name)
            event.stream = name
            _ = try log.appender().append([event])
        }
        let reader = LogReader(try log.connect())
        for name in names {
            #expect(try reader.facts(of: SubscriptionKey(appID: 1, stream: name)).count == 1)
        }
    }

    @Test func aCacheGivesWhatWasPutInEvenWhenItIsFull() {
        var cache = ByteCache<String>(countMax: 8)
        for round in 0..<3 {
            for number in 0..<50 {
                let text = "value \(number)"
                let found = unsafe Array(text.utf8).withUnsafeBytes { bytes in
                    unsafe cache.value(bytes) { $0 }
                }
                #expect(found == text, "round \(round)")
            }
        }
    }
}

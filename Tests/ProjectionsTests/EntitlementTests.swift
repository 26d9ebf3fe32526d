import Ledger
import Postgres
import Testing

@testable import Projections

@Suite struct EntitlementTests {
    private static let subject = Subject(
        appID: 3,
        stream: "7001",
        rules: AppRules(environment: .production)
    )

    private static func day(_ days: Int64) -> Timestamp {
        Timestamp(milliseconds: 1_760_000_000_000 + days * 86_400_000)
    }

    private static func interval(
        _ from: Int64,
        _ until: Int64?,
        _ state: SubscriptionState,
        entitled: Bool = false,
        product: Symbol = "gold"
    ) -> Interval {
        Interval(
            from: day(from),
            until: until.map(day),
            state: state,
            entitledApple: entitled,
            entitled: entitled,
            productID: product
        )
    }

    private static func rows(of history: History) -> ProjectedRows {
        var rows = ProjectedRows(Entitlement.tables)
        Entitlement().write(history, of: subject, into: &rows)
        return rows
    }

    @Test func aHistoryWithoutSubscriptionHasNoRows() {
        var history = History()
        history.ownership = [
            OwnershipInterval(
                owner: UniqueID(bits: 1),
                from: Self.day(0),
                until: nil,
                position: 1,
                isLinked: true
            )
        ]
        #expect(Self.rows(of: history).rowCount == 0)
    }

    @Test func everyRowHasEveryColumnOfItsTable() {
        var history = History()
        history.timeline = [
            Self.interval(0, 30, .active, entitled: true),
            Self.interval(30, nil, .expired(.voluntary)),
        ]
        history.latestTransaction = TransactionFact(
            transactionID: AppleID(1),
            signedDate: Self.day(0),
            digest: 0
        )
        history.latestRenewal = RenewalFact(signedDate: Self.day(0), digest: 0)
        history.anomalies = [Anomaly(kind: .orderConflict, position: 1)]
        history.ownership = [
            OwnershipInterval(
                owner: UniqueID(bits: 1),
                from: Self.day(1),
                until: nil,
                position: 1,
                isLinked: false
            )
        ]
        let rows = Self.rows(of: history)
        #expect(rows.tables.map(\.starts.count) == [1, 2, 1])
        for (table, written) in zip(Entitlement.tables, rows.tables) {
            for row in written.starts.indices {
                let bytes = Array(written.buffer.bytes[written.range(row)])
                #expect(Self.fieldCount(bytes) == table.columns.count, "\(table.name)")
            }
        }
    }

    /// How many fields the bytes of a row hold.
    private static func fieldCount(_ row: [UInt8]) -> Int {
        var at = 2
        var count = 0
        while at < row.count {
            let length = row[at..<at + 4].reduce(0) { $0 << 8 | UInt32($1) }
            at += 4 + (length == .max ? 0 : Int(length))
            count += 1
        }
        return at == row.count ? count : -1
    }

    @Test func boundsOfStateAndAccessSpanAdjacentIntervals() {
        let spans = EntitlementSpan.spans(
            of: [
                Self.interval(0, 30, .active, entitled: true),
                Self.interval(30, 60, .active, entitled: true, product: "silver"),
                Self.interval(60, 76, .gracePeriod, entitled: true),
                Self.interval(76, 90, .billingRetry),
                Self.interval(90, 120, .active, entitled: true),
                Self.interval(120, nil, .expired(.voluntary)),
            ],
            splitAt: []
        )
        #expect(spans.map(\.stateFrom) == [0, 0, 60, 76, 90, 120].map(Self.day))
        #expect(spans.map(\.stateUntil) == [60, 60, 76, 90, 120].map(Self.day) + [nil])
        #expect(spans[0].accessUntil == Self.day(76))
        #expect(spans[2].accessUntil == Self.day(76))
        #expect(spans[4].accessUntil == Self.day(120))
    }

    @Test func anotherCauseIsAnotherState() {
        let spans = EntitlementSpan.spans(
            of: [
                Self.interval(0, 5, .expired(.presumed)),
                Self.interval(5, nil, .expired(.billingRetry)),
            ],
            splitAt: []
        )
        #expect(spans.map(\.stateUntil) == [Self.day(5), nil])
    }

    @Test func intervalsAreCutWhereTheOwnerChangesAndKeepTheirBounds() {
        let timeline: ArraySlice = [
            Self.interval(0, 30, .active, entitled: true),
            Self.interval(30, nil, .expired(.voluntary)),
        ]
        let cuts = [-5, 0, 10, 10, 30, 40].map { Self.day($0) }
        let spans = EntitlementSpan.spans(of: timeline, splitAt: cuts)
        #expect(spans.map(\.interval.from) == [0, 10, 30, 40].map(Self.day))
        #expect(spans.map(\.interval.until) == [10, 30, 40].map(Self.day) + [nil])
        #expect(spans.map(\.stateUntil) == [30, 30].map(Self.day) + [nil, nil])
        #expect(spans[0].accessUntil == Self.day(30))
    }

    @Test func anEmptyIntervalHasNoRow() {
        let spans = EntitlementSpan.spans(
            of: [Self.interval(0, 0, .active), Self.interval(0, nil, .expired(.other))],
            splitAt: [Self.day(0)]
        )
        #expect(spans.map(\.interval.state) == [.expired(.other)])
    }

    @Test func theFirstOwnerOwnedItFromTheBeginning() {
        let owners = [
            Self.owner(1, from: 2, until: 20), Self.owner(2, from: 20, until: 20),
            Self.owner(3, from: 20, until: nil),
        ]
        let runs = OwnerRun.runs(of: owners, from: Self.day(0))
        #expect(runs.map(\.owner) == [UniqueID(bits: 1), UniqueID(bits: 3)])
        #expect(runs.map(\.from) == [0, 20].map(Self.day))
        #expect(runs.map(\.until) == [Self.day(20), nil])
    }

    private static func owner(_ bits: UInt128, from: Int64, until: Int64?) -> OwnershipInterval {
        OwnershipInterval(
            owner: UniqueID(bits: bits),
            from: day(from),
            until: until.map(day),
            position: 1,
            isLinked: false
        )
    }

    /// Random timelines and cuts: the spans cover the same time, without gap or overlap, and
    /// every bound is where the run of equal values ends.
    @Test(arguments: 0..<40) func spansKeepTheTimeline(seed: UInt64) {
        var random = SeededNumbers(seed: seed)
        var timeline: ArraySlice<Interval> = []
        var at: Int64 = 0
        for _ in 0..<Int.random(in: 1...12, using: &random) {
            let length = Int64.random(in: 0...9, using: &random)
            let state =
                [SubscriptionState.active, .gracePeriod, .expired(.other)]
                .randomElement(using: &random) ?? .active
            timeline.append(
                Self.interval(at, at + length, state, entitled: state != .expired(.other))
            )
            at += length
        }
        timeline.append(Self.interval(at, nil, .expired(.presumed)))
        let cuts = (0..<6).map { _ in Self.day(Int64.random(in: -2...at + 3, using: &random)) }
        let spans = EntitlementSpan.spans(of: timeline, splitAt: cuts.sorted())
        for (earlier, later) in zip(spans, spans.dropFirst()) {
            #expect(earlier.interval.until == later.interval.from, "seed \(seed)")
        }
        for half in 0..<(at + 4) * 2 {
            let instant = Timestamp(milliseconds: Self.day(0).milliseconds + half * 43_200_000)
            let wanted = timeline.first { $0.contains(instant) && $0.until != $0.from }
            let found = spans.first { $0.interval.contains(instant) }
            #expect(found?.interval.state == wanted?.state, "seed \(seed)")
            guard let found else { continue }
            let end = timeline.first { $0.from >= instant && !$0.entitled && $0.until != $0.from }
            if found.interval.entitled { #expect(found.accessUntil == end?.from, "seed \(seed)") }
            #expect(found.stateFrom <= instant, "seed \(seed)")
        }
    }
}

/// A source of numbers that gives the same ones for the same seed (SplitMix64).
private struct SeededNumbers: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}

/// The whole life of one subscription as Apple knows it, drawn from a seed.
public struct Life: Sendable {
    /// What stays the same.
    public private(set) var chain: Chain
    /// Every notification that Apple sends, in order of `signedDate`.
    public private(set) var notices: [Notice]
    /// The timeline as scripted.
    public let intervals: [TruthInterval]
    /// What happened, with repeats.
    public let events: [LifeEvent]

    /// Draws the life of subscription `number` of a seed.
    ///
    /// - Parameters:
    ///   - number: which subscription, from 0.
    ///   - seed: equal seeds give equal lives.
    ///   - from: the earliest instant of the first purchase, ms since 1970.
    ///   - until: no notification is signed at or after this instant.
    ///   - rareFactor: how much more often than by nature rare things happen.
    public init(
        number: Int,
        seed: UInt64,
        from: Int64,
        until: Int64,
        rareFactor: Double = 1
    ) {
        let household = Household(of: number, seed: seed, rareFactor: rareFactor)
        self.init(
            household,
            number: number,
            seed: seed,
            span: (from, until),
            rareFactor: rareFactor
        )
    }

    init(chain: Chain, notices: [Notice], intervals: [TruthInterval], events: [LifeEvent]) {
        self.chain = chain
        self.notices = notices
        self.intervals = intervals
        self.events = events
    }

    /// Draws a life that follows no other; nothing is signed at or after `stop`.
    init(
        own number: Int,
        seed: UInt64,
        span: (from: Int64, until: Int64),
        stop: Int64,
        rareFactor: Double,
        sellsSeats: Bool
    ) {
        let (from, until) = span
        var random = SeededRandom(seed: seed, stream: UInt64(number))
        let latest = max(from, until - Span.hour)
        let start = random.between(from, latest) / Span.second * Span.second
        let hasToken = random.chance(0.92)
        var chain = Chain(
            originalTransactionID: LifeWriter.transactionID(number, 0),
            originalPurchaseDate: start,
            groupID: sellsSeats ? Catalogue.seatGroupID : Catalogue.groupID,
            appAccountToken: hasToken ? LifeWriter.uuid(&random) : nil,
            appTransactionID: String(704_000_000_000_000_000 + number),
            storefront: random.weighted(Catalogue.storefronts)
        )
        // A value that Apple may add some day.
        if random.chance(min(0.8, 0.004 * rareFactor)) { chain.ownership = "ORGANIZATION" }
        var writer = LifeWriter(
            number: number,
            chain: chain,
            until: min(until, stop),
            random: random,
            rareFactor: rareFactor,
            sellsSeats: sellsSeats
        )
        writer.run(from: start)
        self.chain = chain
        notices = writer.notices
        intervals = writer.story.intervals
        events = writer.events + (chain.ownership == "PURCHASED" ? [] : [.unknownOwnership])
    }
}

extension Life {
    /// Has it happen in another of Apple's environments, `Production` or `Sandbox`.
    public mutating func move(to environment: String) {
        chain.environment = environment
        guard environment == StoreEnvironment.production.rawValue else { return }
        // Only these say by their ids which environment they are of.
        for (place, notice) in notices.enumerated() {
            guard case .externalPurchaseToken(var token) = notice.form,
                token.id.hasPrefix("SANDBOX_")
            else { continue }
            token.id.removeFirst("SANDBOX_".count)
            notices[place].form = .externalPurchaseToken(token)
        }
    }
}

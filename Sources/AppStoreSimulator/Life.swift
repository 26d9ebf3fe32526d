/// The whole life of one subscription as Apple knows it, drawn from a seed.
public struct Life: Sendable {
    /// What stays the same.
    public let chain: Chain
    /// Every notification that Apple sends, in order of `signedDate`.
    public let notices: [Notice]
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
    public init(number: Int, seed: UInt64, from: Int64, until: Int64) {
        var random = SeededRandom(seed: seed, stream: UInt64(number))
        let latest = max(from, until - Span.hour)
        let start = random.between(from, latest) / Span.second * Span.second
        let hasToken = random.chance(0.92)
        let chain = Chain(
            originalTransactionID: LifeWriter.transactionID(number, 0),
            originalPurchaseDate: start,
            groupID: Catalogue.groupID,
            appAccountToken: hasToken ? LifeWriter.uuid(&random) : nil,
            appTransactionID: String(704_000_000_000_000_000 + number),
            storefront: random.weighted(Catalogue.storefronts)
        )
        var writer = LifeWriter(number: number, chain: chain, until: until, random: random)
        writer.run(from: start)
        self.chain = chain
        notices = writer.notices
        intervals = writer.story.intervals
        events = writer.events
    }
}

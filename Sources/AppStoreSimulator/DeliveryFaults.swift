/// How badly notifications are delivered.
public struct DeliveryFaults: Hashable, Sendable {
    /// The share of notifications that arrive once more, byte for byte the same.
    public var duplicateRate: Double
    /// The share whose first attempts fail, so that they come by Apple's schedule of retries: 1,
    /// 13, 37, 85 or 157 h late.
    public var delayRate: Double
    /// The share that never arrives.
    public var lossRate: Double
    /// The share that is held up for some minutes on the way.
    public var jitterRate: Double
    /// The share that failed six times and comes by a later reading of Apple's history, days to
    /// months late; that is what really puts a subscription's news out of order.
    public var replayRate: Double

    /// Makes a set of rates, each from 0 to 1.
    public init(
        duplicateRate: Double,
        delayRate: Double,
        lossRate: Double,
        jitterRate: Double,
        replayRate: Double
    ) {
        self.duplicateRate = duplicateRate
        self.delayRate = delayRate
        self.lossRate = lossRate
        self.jitterRate = jitterRate
        self.replayRate = replayRate
    }

    /// Everything arrives once, in order of `signedDate`.
    public static let none = DeliveryFaults(
        duplicateRate: 0,
        delayRate: 0,
        lossRate: 0,
        jitterRate: 0,
        replayRate: 0
    )

    /// A receiver with outages behind a shaky network.
    public static let bad = DeliveryFaults(
        duplicateRate: 0.06,
        delayRate: 0.12,
        lossRate: 0.02,
        jitterRate: 0.2,
        replayRate: 0.08
    )

    /// When Apple tries again, in hours after the first attempt.
    static let retryHours: [Int64] = [1, 13, 37, 85, 157]

    /// When one notification arrives: never, once or several times.
    func arrivals(signedDate: Int64, random: inout SeededRandom) -> [Int64] {
        guard self != .none else { return [signedDate + 400] }
        let first = signedDate + random.between(200, 4000)
        let isDelayed = random.chance(delayRate)
        let isLost = random.chance(lossRate)
        let isRepeated = random.chance(duplicateRate)
        let isHeldUp = random.chance(jitterRate)
        let isReplayed = random.chance(replayRate)
        let replay = random.between(7 * Span.day, 90 * Span.day)
        let attempt = random.weighted([
            (weight: 50.0, choice: 0), (24, 1), (14, 2), (8, 3), (4, 4),
        ])
        guard !isLost else { return [] }
        var arrival = first
        if isHeldUp { arrival += random.between(Span.second, 40 * Span.minute) }
        if isDelayed {
            arrival += Self.retryHours[attempt] * Span.hour
            arrival += random.between(0, 5 * Span.minute)
        }
        if isReplayed { arrival = first + replay }
        guard isRepeated else { return [arrival] }
        // The answer to an attempt that succeeded got lost, so Apple tries again.
        let next = isDelayed ? min(attempt + 1, 4) : 0
        var arrivals = [arrival]
        arrivals.append(max(arrival + Span.second, first + Self.retryHours[next] * Span.hour))
        if random.chance(0.2) { arrivals.append(arrival + random.between(10, Span.minute)) }
        return arrivals
    }
}

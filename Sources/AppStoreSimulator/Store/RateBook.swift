/// Counts requests by endpoint and hour of real time.
struct RateBook: Sendable {
    private struct Count: Sendable {
        var hour: Int64
        var requests: Int
    }

    /// What an hour allows, as a share of Apple's limits.
    var factor: Double
    let environment: StoreEnvironment
    private var counts: [StoreEndpoint: Count] = [:]

    init(environment: StoreEnvironment, factor: Double) {
        self.environment = environment
        self.factor = factor
    }

    /// How many requests an hour allows.
    func limit(_ endpoint: StoreEndpoint) -> Int {
        let share = environment == .production ? factor : factor / 10
        return max(1, Int(Double(endpoint.hourlyLimit) * share))
    }

    /// Counts a request.
    ///
    /// - Returns: nil where it may pass, else from when on requests pass again, ms since 1970.
    mutating func count(_ endpoint: StoreEndpoint, at wall: Int64) -> Int64? {
        let hour = wall / Span.hour
        var count = counts[endpoint] ?? Count(hour: hour, requests: 0)
        if count.hour != hour { count = Count(hour: hour, requests: 0) }
        guard count.requests < limit(endpoint) else { return (hour + 1) * Span.hour }
        count.requests += 1
        counts[endpoint] = count
        return nil
    }
}

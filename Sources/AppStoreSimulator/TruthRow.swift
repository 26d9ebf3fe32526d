/// What is true of one subscription: what Apple knows, and what was delivered of it.
public struct TruthRow: Hashable, Sendable {
    /// Apple's `originalTransactionId`.
    public var originalTransactionID: String
    /// Apple's `bundleId`.
    public var bundleID: String
    /// Apple's `environment`.
    public var environment: String
    /// How many notifications Apple sent.
    public var appleEvents: Int
    /// Apple's status at the end, 1…5.
    public var appleStatus: Int
    /// What Apple knows, as the life was scripted.
    public var apple: [TruthInterval]
    /// How many different notifications arrived.
    public var deliveredEvents: Int
    /// What follows from those; empty where none arrived.
    public var delivered: [TruthInterval]

    /// What was delivered, at an instant; nil before the first purchase.
    public func at(_ instant: Int64) -> TruthAnswer? { TruthAnswer(at: instant, in: delivered) }

    /// What Apple knows, at an instant; nil before the first purchase.
    public func appleAt(_ instant: Int64) -> TruthAnswer? { TruthAnswer(at: instant, in: apple) }

    /// The row as a truth file has it, JSON.
    public var wireValue: WireValue {
        [
            "originalTransactionId": .string(originalTransactionID),
            "bundleId": .string(bundleID),
            "environment": .string(environment),
            "apple": [
                "events": .integer(Int64(appleEvents)),
                "status": .integer(Int64(appleStatus)),
                "intervals": .array(apple.map(\.wireValue)),
            ],
            "delivered": [
                "events": .integer(Int64(deliveredEvents)),
                "intervals": .array(delivered.map(\.wireValue)),
            ],
        ]
    }
}

/// The right answer about one subscription at one instant.
public struct TruthAnswer: Hashable, Sendable {
    /// The state's word.
    public var state: String
    /// Why, for `expired` and `revoked`.
    public var cause: String?
    /// The product.
    public var productID: String
    /// Whether Apple's line grants access.
    public var entitledApple: Bool
    /// Since when the state has been the same without a break, ms since 1970.
    public var from: Int64
    /// How long the state stays the same; nil where it never changes.
    public var until: Int64?

    /// Looks an instant up; nil before the first interval.
    public init?(at instant: Int64, in intervals: [TruthInterval]) {
        guard
            let index = intervals.firstIndex(where: { interval in
                interval.from <= instant && interval.until.map { instant < $0 } ?? true
            })
        else { return nil }
        let interval = intervals[index]
        let state = interval.condition.state
        var first = index
        while first > 0, intervals[first - 1].condition.state == state { first -= 1 }
        var last = index
        while last + 1 < intervals.count, intervals[last + 1].condition.state == state { last += 1 }
        self.state = state.rawValue
        cause = interval.condition.cause
        productID = interval.productID
        entitledApple = interval.condition.isEntitledByApple
        from = intervals[first].from
        until = intervals[last].until
    }
}

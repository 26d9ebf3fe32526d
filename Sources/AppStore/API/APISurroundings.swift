public import Ledger

/// The clock, the sleep and the chance that a client is given.
public struct APISurroundings: Sendable {
    /// What our clock says.
    public var now: @Sendable () -> Timestamp
    /// Waits; false where the program is to stop, so that the wait was cut short.
    public var sleep: @Sendable (Milliseconds) -> Bool
    /// Draws a number evenly.
    public var random: @Sendable (ClosedRange<Int64>) -> Int64

    /// Takes them.
    public init(
        now: @escaping @Sendable () -> Timestamp,
        sleep: @escaping @Sendable (Milliseconds) -> Bool,
        random: @escaping @Sendable (ClosedRange<Int64>) -> Int64 = { .random(in: $0) }
    ) {
        self.now = now
        self.sleep = sleep
        self.random = random
    }
}

/// How much patience a client has, and how much of Apple's limits it takes.
public struct APIPatience: Hashable, Sendable {
    /// How often one request is sent at most.
    public var attemptsMax: Int
    /// How long one request may wait in all, between attempts and for its turn.
    public var waitMax: Milliseconds
    /// Which part of Apple's hourly limits is used, above 0 and at most 1.
    public var share: Double

    /// Makes it.
    public init(attemptsMax: Int = 6, waitMax: Milliseconds = .minutes(5), share: Double = 0.5) {
        precondition(attemptsMax > 0 && share > 0 && share <= 1, "patience is positive")
        self.attemptsMax = attemptsMax
        self.waitMax = waitMax
        self.share = share
    }
}

/// What a simulation did.
public struct SimulationStatistics: Hashable, Sendable {
    /// How many subscriptions lived.
    public var subscriptions = 0
    /// How many notifications Apple sent.
    public var notices = 0
    /// How many lines were written.
    public var deliveries = 0
    /// How many lines repeat an earlier one.
    public var duplicates = 0
    /// How many notifications never arrive.
    public var lost = 0
    /// How many notifications had not arrived yet when the simulated time ended.
    public var inFlight = 0
    /// How many subscriptions nothing arrived of.
    public var unheardOf = 0
    /// How many neighbouring lines are not in order of `signedDate`.
    public var disorderedNeighbours = 0
    /// How many neighbouring lines of the same subscription are not in order of `signedDate`.
    public var disorderedWithinSubscription = 0
    /// How many subscriptions are in each state at the end, as delivered.
    public var deliveredStates: [String: Int] = [:]
    /// How many subscriptions are in each state at the end, as Apple knows.
    public var appleStates: [String: Int] = [:]
    /// How many subscriptions Apple and the deliveries disagree about at the end.
    public var differingStates = 0
    /// How often each thing happened.
    public var events: [LifeEvent: Int] = [:]

    /// Makes the statistics of nothing.
    public init() {}

    /// The numbers as JSON.
    public var wireValue: WireValue {
        func counts(_ table: [String: Int]) -> WireValue {
            .object(
                table.sorted { $0.key < $1.key }
                    .map { WireMember($0.key, .integer(Int64($0.value))) }
            )
        }
        return [
            "subscriptions": .integer(Int64(subscriptions)),
            "notices": .integer(Int64(notices)),
            "deliveries": .integer(Int64(deliveries)),
            "duplicates": .integer(Int64(duplicates)),
            "lost": .integer(Int64(lost)),
            "inFlight": .integer(Int64(inFlight)),
            "unheardOf": .integer(Int64(unheardOf)),
            "disorderedNeighbours": .integer(Int64(disorderedNeighbours)),
            "disorderedWithinSubscription": .integer(Int64(disorderedWithinSubscription)),
            "differingStates": .integer(Int64(differingStates)),
            "deliveredStates": counts(deliveredStates),
            "appleStates": counts(appleStates),
            "events": counts(
                Dictionary(uniqueKeysWithValues: events.map { ($0.key.rawValue, $0.value) })
            ),
        ]
    }
}

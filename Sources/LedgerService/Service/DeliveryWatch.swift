internal import Synchronization

/// Sees when more deliveries are refused than accepted, which nobody may notice otherwise: in
/// Sandbox Apple does not send a refused notification again.
///
/// Each environment is watched for itself, since a busy Production would hide a Sandbox of which
/// everything is refused. What a refused delivery says of its environment is unverified; the worst
/// that a stranger can bring about is an alert.
package final class DeliveryWatch: Sendable {
    /// Where a delivery belongs.
    package enum Origin: String, CaseIterable, Sendable {
        case production = "Production"
        case sandbox = "Sandbox"
        /// It could not be made out.
        case unknown

        init(_ environment: String?) { self = environment.flatMap(Self.init) ?? .unknown }
    }

    /// What the window holds of one origin.
    package struct Count: Hashable, Sendable {
        /// How many deliveries were kept.
        package var accepted = 0
        /// How many were turned away.
        package var refused = 0
    }

    /// The state of one origin.
    package struct Standing: Sendable {
        /// Where the deliveries belong.
        package var origin: Origin
        /// What the window holds.
        package var count: Count
        /// Whether the refusals outnumber the acceptances.
        package var isOutnumbered: Bool
    }

    /// How many refusals there must be before it means anything.
    package static let refusalsMin = 5
    /// How long a window is.
    package static let window = Duration.seconds(600)
    /// How many parts a window has; it moves on by one part at a time.
    static let parts = 10

    private struct Part {
        var number: Int64 = .min
        var counts = [Count](repeating: Count(), count: Origin.allCases.count)
    }

    private struct State {
        var parts = [Part](repeating: Part(), count: DeliveryWatch.parts)
        var alertedAt = [Duration?](repeating: nil, count: Origin.allCases.count)
    }

    private let window: Duration
    private let elapsed: @Sendable () -> Duration
    private let alert: @Sendable (Standing) -> Void
    private let state = Mutex(State())

    /// Makes a watch.
    ///
    /// - Parameters:
    ///   - window: over how long deliveries are counted.
    ///   - elapsed: the time since some moment; a clock that nobody sets.
    ///   - alert: told when the refusals begin to outnumber the acceptances, and again after each
    ///     window in which they still do.
    package init(
        window: Duration = DeliveryWatch.window,
        elapsed: (@Sendable () -> Duration)? = nil,
        alert: @escaping @Sendable (Standing) -> Void
    ) {
        self.window = window
        let start = ContinuousClock.now
        self.elapsed = elapsed ?? { ContinuousClock.now - start }
        self.alert = alert
    }

    /// Counts a delivery.
    package func note(_ origin: Origin, isAccepted: Bool) {
        let time = elapsed()
        let standing = state.withLock { state -> Standing? in
            let part = partNumber(time)
            let place = Int(part % Int64(Self.parts))
            if state.parts[place].number != part {
                state.parts[place] = Part()
                state.parts[place].number = part
            }
            if isAccepted {
                state.parts[place].counts[origin.place].accepted += 1
                return nil
            }
            state.parts[place].counts[origin.place].refused += 1
            let standing = self.standing(of: origin, at: part, state)
            guard standing.isOutnumbered else { return nil }
            if let last = state.alertedAt[origin.place], time - last < window { return nil }
            state.alertedAt[origin.place] = time
            return standing
        }
        if let standing { alert(standing) }
    }

    /// How each origin stands.
    package var standings: [Standing] {
        let part = partNumber(elapsed())
        return state.withLock { state in
            Origin.allCases.map { standing(of: $0, at: part, state) }
        }
    }

    private func partNumber(_ time: Duration) -> Int64 {
        Int64(time / (window / Self.parts))
    }

    private func standing(of origin: Origin, at part: Int64, _ state: State) -> Standing {
        var count = Count()
        for other in state.parts where other.number > part - Int64(Self.parts) {
            count.accepted += other.counts[origin.place].accepted
            count.refused += other.counts[origin.place].refused
        }
        return Standing(
            origin: origin,
            count: count,
            isOutnumbered: count.refused >= Self.refusalsMin && count.refused > count.accepted
        )
    }
}

extension DeliveryWatch.Origin {
    fileprivate var place: Int {
        switch self {
        case .production: 0
        case .sandbox: 1
        case .unknown: 2
        }
    }
}

import Ledger

/// An interval of the timeline with the bounds that questions at an instant ask for.
struct EntitlementSpan {
    var interval: Interval
    /// The bounds of the contiguous run of this state and cause.
    var stateFrom: Timestamp
    var stateUntil: Timestamp?
    /// Where the contiguous run of access ends; nil where it never does.
    ///
    /// They say nothing where the interval grants none.
    var accessUntilApple: Timestamp?
    var accessUntil: Timestamp?

    /// The spans of a timeline, cut at the instants in ascending order.
    ///
    /// Empty intervals (a period of no length) have no rows: no instant lies in them.
    static func spans(
        of timeline: ArraySlice<Interval>,
        splitAt cuts: [Timestamp]
    ) -> [EntitlementSpan] {
        var spans: [EntitlementSpan] = []
        spans.reserveCapacity(timeline.count + cuts.count)
        var cut = cuts.makeIterator()
        var next = cut.next()
        for interval in timeline where !interval.isEmpty {
            var rest = interval
            while let at = next, interval.until.map({ at < $0 }) ?? true {
                if at > rest.from {
                    var head = rest
                    head.until = at
                    rest.from = at
                    spans.append(EntitlementSpan(head))
                }
                next = cut.next()
            }
            spans.append(EntitlementSpan(rest))
        }
        spreadForwards(&spans)
        spreadBackwards(&spans)
        return spans
    }

    private init(_ interval: Interval) {
        self.interval = interval
        stateFrom = interval.from
        stateUntil = interval.until
        accessUntilApple = interval.until
        accessUntil = interval.until
    }

    private static func spreadForwards(_ spans: inout [EntitlementSpan]) {
        for index in spans.indices.dropFirst() where continuesState(spans, at: index) {
            spans[index].stateFrom = spans[index - 1].stateFrom
        }
    }

    private static func spreadBackwards(_ spans: inout [EntitlementSpan]) {
        for index in spans.indices.dropFirst().reversed() {
            let later = spans[index]
            guard spans[index - 1].interval.until == later.interval.from else { continue }
            if continuesState(spans, at: index) {
                spans[index - 1].stateUntil = later.stateUntil
            }
            if later.interval.entitledApple {
                spans[index - 1].accessUntilApple = later.accessUntilApple
            }
            if later.interval.entitled {
                spans[index - 1].accessUntil = later.accessUntil
            }
        }
    }

    private static func continuesState(_ spans: [EntitlementSpan], at index: Int) -> Bool {
        let earlier = spans[index - 1].interval
        let later = spans[index].interval
        return earlier.until == later.from && earlier.state == later.state
    }
}

/// One owner's time, from the first purchase on and without empty stretches.
struct OwnerRun {
    var owner: UniqueID
    var from: Timestamp
    var until: Timestamp?
    var position: Int64
    var isLinked: Bool

    /// The owners in order of time.
    ///
    /// Who owned it first is taken to have owned it since `birth`: Apple signs a purchase, and
    /// with it the token, a little after the period began.
    static func runs(of ownership: [OwnershipInterval], from birth: Timestamp) -> [OwnerRun] {
        var runs: [OwnerRun] = []
        for interval in ownership {
            if let until = interval.until, until <= interval.from { continue }
            // A stretch that begins before the last one ended takes over from there on.
            if let last = runs.last, last.until.map({ $0 > interval.from }) ?? true {
                if last.from >= interval.from { continue }
                runs[runs.count - 1].until = interval.from
            }
            runs.append(
                OwnerRun(
                    owner: interval.owner,
                    from: interval.from,
                    until: interval.until,
                    position: interval.position,
                    isLinked: interval.isLinked
                )
            )
        }
        if let first = runs.first, first.from > birth { runs[0].from = birth }
        return runs
    }
}

extension Interval {
    /// Whether no instant lies within it.
    fileprivate var isEmpty: Bool { until.map { $0 <= from } ?? false }
}

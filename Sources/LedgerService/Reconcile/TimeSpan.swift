package import Ledger

/// A stretch of time, its end not within.
package struct TimeSpan: Hashable, Sendable, CustomStringConvertible {
    /// Its first instant.
    package var from: Timestamp
    /// Its end.
    package var to: Timestamp

    /// Makes it.
    package init(from: Timestamp, to: Timestamp) {
        self.from = from
        self.to = to
    }

    /// Whether nothing is in it.
    package var isEmpty: Bool { from >= to }

    /// Its length in milliseconds.
    var length: Int64 { max(0, to.milliseconds - from.milliseconds) }

    /// What is left of it without others, in order, in pieces of at most a length.
    ///
    /// - Parameters:
    ///   - others: in any order; they may overlap.
    ///   - longest: how long a piece may be.
    /// - Returns: the pieces, none of them empty.
    package func pieces(without others: [TimeSpan], longest: Milliseconds) -> [TimeSpan] {
        var pieces: [TimeSpan] = []
        var from = from
        func add(upTo end: Timestamp) {
            while from < end {
                let to = min(end, from.adding(longest))
                pieces.append(TimeSpan(from: from, to: to))
                from = to
            }
        }
        for other in others.sorted(by: { $0.from < $1.from }) where other.to > from {
            guard other.from < to else { break }
            add(upTo: other.from)
            from = max(from, other.to)
        }
        add(upTo: to)
        return pieces
    }

    /// Both ends.
    package var description: String { "\(from) to \(to)" }
}

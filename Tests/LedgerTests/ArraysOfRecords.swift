@testable import Ledger

// The fold reads events and keeps records where it is told to; tests hold them in arrays.

extension EventHead {
    /// Reads the head of one of some events.
    init(_ events: [Event], _ place: Int) {
        var head: EventHead?
        Events.lend(events) { head = EventHead($0, place) }
        guard let head else { preconditionFailure("there is no event") }
        self = head
    }
}

extension Period {
    /// Reads the transaction of one of some events.
    init(_ events: [Event], _ place: Int) {
        var period = Period.sample
        Events.lend(events) { period.read($0, place, EventHead($0, place)) }
        self = period
    }
}

extension Coverage {
    /// Computes the segments of periods in order of their start.
    mutating func compute(_ periods: [Period]) {
        var pool = Pool<Period>()
        for period in periods { pool.append(period) }
        compute(pool)
    }
}

internal import EventLog

/// From where on somebody reads the log: a position, and the epoch in which it means that event.
struct LogPlace: Hashable, Sendable {
    /// The last position that was read; 0 for none.
    var after: Int64
    /// The epoch that it was read in; nil at the beginning.
    var epoch: Int64?

    /// Reads `after` and `epoch`.
    ///
    /// - Throws: `ServiceProblem` also for a position without its epoch: after a restore it would be
    ///   another event's, and nobody could tell.
    init(_ parameters: Parameters) throws(ServiceProblem) {
        after = try parameters.integer("after", in: 0...Int64.max) ?? 0
        epoch = try parameters.integer("epoch", in: 1...Int64.max)
        guard after == 0 || epoch != nil else {
            throw .parameter("epoch", "the epoch of the page before, which goes with after")
        }
    }

    /// The present epoch.
    ///
    /// - Parameter epochs: all of the log's, the first one first.
    /// - Returns: the last one's number.
    /// - Throws: `ServiceProblem` where the place is of another one.
    func epoch(_ epochs: [Epoch]) throws(ServiceProblem) -> Int64 {
        let present = epochs.last?.number ?? 0
        guard let epoch, epoch != present else { return present }
        // An epoch that the log does not know was itself cut off by the restore of an older backup.
        let isKnown = epochs.contains { $0.number == epoch }
        let later = epochs.filter { $0.number > epoch }
        throw .epochEnded(
            epoch,
            cutAfter: isKnown ? later.map(\.cutPosition).min() ?? 0 : 0,
            present: present
        )
    }

    /// Refuses a place that the log has not come to, as nobody was ever given one: whoever asks from
    /// there would wait for ever, or pass over what is appended in between.
    ///
    /// - Parameter end: the last position, read after the question came.
    /// - Throws: `ServiceProblem`.
    func check(notBeyond end: Int64) throws(ServiceProblem) {
        guard after > end else { return }
        throw .parameter("after", "the next_after of the page before; the log ends at \(end)")
    }
}

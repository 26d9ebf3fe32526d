internal import Postgres

extension LogReader {
    /// A slice that holds more than this many times the usual share is read in stretches.
    static let stretchShare: Int64 = 2

    /// Below this size a slice is read in one go.
    static let stretchSizeMin: Int64 = 16 << 20

    /// The parts of `ledger.fact` that are read side by side; a stream never spans two of them.
    ///
    /// They are its slices. Where one is much larger than the others, so that whoever reads it
    /// would be at it long after all others have ended, it is divided at some of its streams.
    ///
    /// - Throws: what the server says.
    public func stretches() throws(EventLogError) -> [Slice] {
        try stretches(sizeMin: Self.stretchSizeMin)
    }

    func stretches(sizeMin: Int64) throws(EventLogError) -> [Slice] {
        try logged("divide the facts") {
            let slices = try slices()
            let rows = try connection.query(
                "select pg_relation_size(to_regclass(part)) from ledger.slices($1) order by slice",
                [.text("ledger.fact")]
            )
            let sizes = slices.indices.map { rows.int($0, 0) ?? 0 }
            let share = sizes.reduce(0, +) / Int64(max(1, slices.count))
            let most = max(sizeMin, share * Self.stretchShare)
            var parts: [Slice] = []
            for (slice, size) in zip(slices, sizes) {
                parts += size > most ? try divided(slice, size, Int(size / most) + 1) : [slice]
            }
            return parts
        }
    }

    /// A slice in parts of about the same number of events, by a sample of its pages.
    private func divided(_ slice: Slice, _ size: Int64, _ count: Int) throws -> [Slice] {
        // Some thousand pages tell enough.
        let percent = min(100, max(0.01, 100 * 2000 * 8192 / Double(size)))
        let shares = (1..<count).map { "\(Double($0) / Double(count))" }
        let rows = try connection.query(
            """
            select cut collate "C" as cut from unnest((
                select percentile_disc(array[\(shares.joined(separator: ", "))]::float8[])
                    within group (order by stream)
                from \(slice.relation) tablesample system (\(percent))
            )) as cuts (cut)
            where cut is not null group by 1 order by 1
            """
        )
        let cuts = (0..<rows.count).compactMap { rows.text($0, 0) }
        return zip([nil] + cuts, cuts + [nil]).map { from, until in
            var part = slice
            part.streams = (from, until)
            return part
        }
    }
}

extension LogReader.Slice {
    /// What a statement reads from, up to a position.
    func source(upTo position: Int64?) -> String {
        let conditions = [
            streams.from.map { "stream >= \(LogReader.literal($0))" },
            streams.until.map { "stream < \(LogReader.literal($0))" },
            position.map { "position <= \($0)" },
        ].compactMap { $0 }
        guard !conditions.isEmpty else { return relation }
        return "\(relation) where \(conditions.joined(separator: " and "))"
    }
}

/// The timeline as the script tells it: each piece of news paints over what was expected before.
struct Story: Sendable {
    private var strokes: [(from: Int64, condition: TruthCondition, productID: String)] = []

    /// From this instant on, as far as is known now.
    mutating func paint(from: Int64, _ condition: TruthCondition, _ productID: String) {
        while let last = strokes.last, last.from >= from { strokes.removeLast() }
        strokes.append((from, condition, productID))
    }

    var intervals: [TruthInterval] {
        TruthInterval.joined(
            strokes.indices.map { index in
                TruthInterval(
                    from: strokes[index].from,
                    until: index + 1 < strokes.count ? strokes[index + 1].from : nil,
                    condition: strokes[index].condition,
                    productID: strokes[index].productID
                )
            }
        )
    }
}

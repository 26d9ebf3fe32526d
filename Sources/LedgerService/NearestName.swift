/// The known name that a mistyped one most likely means, nil when none is near.
package func nearest(to name: String, among known: [String]) -> String? {
    let ranked = known.map { (name: $0, distance: distance(from: name, to: $0)) }
    guard let best = ranked.min(by: { $0.distance < $1.distance }),
        best.distance <= max(1, name.count / 3)
    else { return nil }
    return best.name
}

/// How many insertions, deletions and replacements lead from one text to the other.
private func distance(from left: String, to right: String) -> Int {
    let right = Array(right)
    var row = Array(0...right.count)
    for (i, a) in left.enumerated() {
        var diagonal = row[0]
        row[0] = i + 1
        for (j, b) in right.enumerated() {
            let replaced = diagonal + (a == b ? 0 : 1)
            diagonal = row[j + 1]
            row[j + 1] = min(replaced, row[j] + 1, row[j + 1] + 1)
        }
    }
    return row[right.count]
}

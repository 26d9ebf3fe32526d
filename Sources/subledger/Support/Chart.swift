/// A horizontal bar of text, in eighths of a column, for a share from 0 to 1.
///
/// - Parameters:
///   - share: how much of the bar is full; beyond the ends it is cut.
///   - columns: how wide a full bar is.
/// - Returns: the bar, followed by spaces up to its full width.
func bar(_ share: Double, columns: Int) -> String {
    let eighths = Int((min(1, max(0, share)) * Double(columns * 8)).rounded())
    let parts = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"]
    let text = String(repeating: "█", count: eighths / 8) + parts[eighths % 8]
    return text + String(repeating: " ", count: columns - text.count)
}

/// Bars for labelled numbers, the longest for the largest.
///
/// - Parameters:
///   - counts: the labels with their numbers.
///   - width: how wide a line may be.
/// - Returns: a line for each.
func barChart(_ counts: [(label: String, count: Int)], width: Int) -> [String] {
    let labelWidth = counts.reduce(0) { max($0, $1.label.count) }
    let most = counts.reduce(1) { max($0, $1.count) }
    let numberWidth = grouped(most).count
    let columns = max(5, min(40, width - labelWidth - numberWidth - 4))
    return counts.map { label, count in
        let name = label + String(repeating: " ", count: labelWidth - label.count)
        let number = grouped(count)
        let padding = String(repeating: " ", count: numberWidth - number.count)
        return "\(name)  \(bar(Double(count) / Double(most), columns: columns)) \(padding)\(number)"
    }
}

/// An amount in milliunits for people, `9.99 USD`; a dash where there is none.
func amountText(_ milliunits: Int64?, _ currency: String?) -> String {
    guard let milliunits else { return "–" }
    let thousandths = String(milliunits.magnitude % 1000)
    var decimals = String(repeating: "0", count: 3 - thousandths.count) + thousandths
    if decimals.hasSuffix("0") { decimals.removeLast() }
    let sign = milliunits < 0 ? "-" : ""
    return "\(sign)\(grouped(milliunits.magnitude / 1000)).\(decimals)"
        + (currency.map { " \($0)" } ?? "")
}

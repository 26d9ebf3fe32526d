internal import LedgerService

/// Rows under headings, aligned for a person's eye.
struct TextTable {
    /// A column.
    struct Column {
        /// The heading.
        var title: String
        /// Whether it holds numbers, which are aligned to the right.
        var isNumeric = false
        /// Whether its texts may be cut where the table is too wide.
        var mayShrink = false
        /// Whether they lose their beginning and not their end: that of a product tells little.
        var losesBeginning = false
    }

    private let columns: [Column]
    private var rows: [[String]] = []

    /// The narrowest that a column is cut to.
    static let shrunkWidthMin = 8

    /// Makes an empty table.
    init(_ columns: [Column]) { self.columns = columns }

    /// Makes an empty table from headings; `#` before one aligns to the right, `~` lets it shrink,
    /// `<` lets it shrink at the beginning of its texts.
    init(_ titles: String...) { self.init(titles) }

    /// Makes an empty table from headings.
    init(_ titles: [String]) {
        columns = titles.map { title in
            Column(
                title: String(title.drop { "#~<".contains($0) }),
                isNumeric: title.hasPrefix("#"),
                mayShrink: title.hasPrefix("~") || title.hasPrefix("<"),
                losesBeginning: title.hasPrefix("<")
            )
        }
    }

    /// How many rows there are.
    var count: Int { rows.count }

    /// Adds a row with a text for each column.
    mutating func add(_ cells: String...) { add(cells) }

    /// Adds a row with a text for each column.
    mutating func add(_ cells: [String]) {
        precondition(cells.count == columns.count, "a row has one text for each column")
        rows.append(cells.map(printable))
    }

    /// The table as lines, no wider than `width` as far as shrinking columns allow.
    func lines(width: Int) -> [String] {
        var widths = columns.indices.map { column in
            rows.reduce(columns[column].title.count) { max($0, $1[column].count) }
        }
        var excess = widths.reduce(0, +) + 2 * (columns.count - 1) - width
        while excess > 0 {
            // The widest column gives first.
            let candidates = columns.indices.filter {
                columns[$0].mayShrink && widths[$0] > Self.shrunkWidthMin
            }
            guard let widest = candidates.max(by: { widths[$0] < widths[$1] }) else { break }
            widths[widest] -= 1
            excess -= 1
        }
        let header = line(columns.map(\.title), widths)
        let rule = widths.map { String(repeating: "─", count: $0) }.joined(separator: "  ")
        return [header, rule] + rows.map { line($0, widths) }
    }

    private func line(_ cells: [String], _ widths: [Int]) -> String {
        var result = ""
        for (index, cell) in cells.enumerated() {
            if index > 0 { result += "  " }
            var text = cell
            if cell.count > widths[index] {
                let room = widths[index] - 1
                text =
                    columns[index].losesBeginning
                    ? "…" + cell.suffix(room) : cell.prefix(room) + "…"
            }
            let padding = String(repeating: " ", count: widths[index] - text.count)
            result += columns[index].isNumeric ? padding + text : text + padding
        }
        while result.last == " " { result.removeLast() }
        return result
    }
}

extension Output {
    /// Writes a table as wide as the terminal.
    func table(_ table: TextTable) throws {
        for (index, text) in table.lines(width: Terminal.columns).enumerated() {
            try line(index == 0 ? Terminal.bold(text) : index == 1 ? Terminal.dim(text) : text)
        }
    }
}

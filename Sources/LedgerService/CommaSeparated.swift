/// Comma-separated values as RFC 4180 has them, safe to open in a spreadsheet.
package enum CommaSeparated {
    /// One line without its end; null is an empty field.
    ///
    /// - Parameter fields: the fields of a row, or the names of the columns.
    /// - Returns: the line.
    package static func line(_ fields: [String?]) -> String {
        fields.map { quoted($0 ?? "") }.joined(separator: ",")
    }

    private static func quoted(_ plain: String) -> String {
        let field = isTakenForAFormula(plain) ? "'" + plain : plain
        let mustQuote = field.utf8.contains { byte in
            [UInt8(ascii: ","), UInt8(ascii: "\""), 0x0A, 0x0D].contains(byte)
        }
        return mustQuote ? "\"" + field.replacing("\"", with: "\"\"") + "\"" : field
    }

    /// Whether a spreadsheet would calculate the field, or could not tell that it was marked.
    ///
    /// Such a field gets an apostrophe, with which a spreadsheet shows it as text. One that begins
    /// with an apostrophe gets another, so that taking one away gives back every field. A plain
    /// number is left alone: it is what it says.
    private static func isTakenForAFormula(_ field: String) -> Bool {
        guard let first = field.utf8.first,
            "=+-@\t\r\n'".utf8.contains(first)
        else { return false }
        return !isNumber(field)
    }

    private static func isNumber(_ field: String) -> Bool {
        let parts = field.drop { $0 == "-" }.split(
            separator: ".",
            omittingEmptySubsequences: false
        )
        return field.utf8.count { $0 == UInt8(ascii: "-") } <= 1 && (1...2).contains(parts.count)
            && parts.allSatisfy { part in
                !part.isEmpty && part.utf8.allSatisfy { (0x30...0x39).contains($0) }
            }
    }
}

/// A name, a ticket or another text that stands on one line and is compared with others of its kind.
package enum OneLine {
    /// Whether a text is one: something is in it, no control character, and no blank at either end,
    /// so that what looks the same is the same.
    ///
    /// - Parameters:
    ///   - text: the text.
    ///   - countMax: how many characters it may have.
    /// - Returns: whether it is.
    package static func isOne(_ text: String, countMax: Int) -> Bool {
        let scalars = text.unicodeScalars
        guard let first = scalars.first, let last = scalars.last, text.count <= countMax else {
            return false
        }
        return !first.properties.isWhitespace && !last.properties.isWhitespace
            && !scalars.contains { scalar in
                [.control, .lineSeparator, .paragraphSeparator]
                    .contains(scalar.properties.generalCategory)
            }
    }

    /// What is wanted, for a message.
    ///
    /// - Parameter countMax: how many characters it may have.
    /// - Returns: the words.
    package static func want(_ countMax: Int) -> String {
        "1 to \(countMax) characters on one line, without control characters or blanks at the ends"
    }
}

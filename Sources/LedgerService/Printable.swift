/// A text from outside without what a terminal would act on.
///
/// Controls would move the cursor, change colours or begin a line of their own; marks that change
/// the direction of writing would show a text in another order than it has. Each becomes U+FFFD.
///
/// - Parameter text: one line, which anybody may have made: Apple, a file, a client.
/// - Returns: the line as it may be shown.
package func printable(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: isActedOn) else { return text }
    var result = String.UnicodeScalarView()
    result.append(contentsOf: text.unicodeScalars.map { isActedOn($0) ? "\u{FFFD}" : $0 })
    return String(result)
}

private func isActedOn(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0..<0x20, 0x7F..<0xA0: true
    case 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
    default: false
    }
}

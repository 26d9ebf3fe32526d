internal import Synchronization

/// A text of few distinct values (a product, a currency, an unknown enum value), held once.
///
/// Comparing two symbols compares two integers; a fact made of symbols is copied without
/// reference counting, which is what makes folding fast. Equal texts give equal symbols for the
/// life of the process; the number behind a symbol means nothing outside it and orders nothing.
public struct Symbol: Hashable, Sendable {
    @usableFromInline let index: UInt32

    @usableFromInline init(index: UInt32) { self.index = index }

    /// Looks the text up, or adds it.
    public init(_ text: String) {
        index = Self.table.withLock { table in
            if let known = table.indices[text] { return known }
            let index = UInt32(table.texts.count)
            table.texts.append(text)
            table.indices[text] = index
            return index
        }
    }

    /// The symbol's text; empty for the number that stands for no symbol, which whoever prints the
    /// inside of a fact comes upon.
    public var text: String {
        Self.table.withLock { index < $0.texts.count ? $0.texts[Int(index)] : "" }
    }

    private struct Table {
        var texts: [String] = []
        var indices: [String: UInt32] = [:]
    }

    private static let table = Mutex(Table())
}

extension Symbol: Packable {
    /// The number that no symbol gets.
    @inlinable public static var absent: Symbol { Symbol(index: .max) }
}

extension Symbol: ExpressibleByStringLiteral, CustomStringConvertible {
    /// Makes a symbol from a literal.
    public init(stringLiteral text: String) { self.init(text) }

    /// The symbol's text.
    public var description: String { text }
}

/// An enumeration of Apple's that may grow: an unknown value is kept as its own text.
public protocol OpenVocabulary: Hashable, Sendable, CustomStringConvertible {
    /// The values that this program knows, with Apple's spelling.
    static var known: [(text: String, value: Self)] { get }

    /// The case that keeps an unknown text.
    static func unknown(_ text: Symbol) -> Self

    /// The kept text of the unknown case, nil for known ones.
    var unknownText: Symbol? { get }
}

extension OpenVocabulary {
    /// The value that Apple spells so; never fails.
    ///
    /// Inlinable, since without the type at hand the search costs as much as all else of a decode.
    @inlinable public init(_ text: String) {
        self = Self.known.first { $0.text == text }?.value ?? .unknown(Symbol(text))
    }

    /// Apple's spelling; inlinable for the same reason.
    @inlinable public var description: String {
        unknownText?.text ?? Self.known.first { $0.value == self }?.text ?? ""
    }
}

/// An optional value in the room of the value alone: one that never occurs stands for none.
///
/// A fact has some forty optional values; with a flag beside each it is nearly twice as wide, and
/// how many bytes a fact has is a good part of what folding it costs.
@frozen @propertyWrapper public struct Packed<Value: Packable>: Hashable, Sendable {
    @usableFromInline var stored: Value

    /// Holds nothing.
    @inlinable public init() { stored = .absent }

    /// Holds a value, or nothing.
    @inlinable public init(wrappedValue: Value?) { stored = wrappedValue ?? .absent }

    /// The value, nil where there is none.
    @inlinable public var wrappedValue: Value? {
        get { stored == .absent ? nil : stored }
        set { stored = newValue ?? .absent }
    }
}

extension Packed: CustomStringConvertible {
    /// The value as text, `nil` where there is none.
    public var description: String { wrappedValue.map { "\($0)" } ?? "nil" }
}

/// A value of which one never occurs.
public protocol Packable: Hashable, Sendable, BitwiseCopyable {
    /// What never occurs, and so stands for no value.
    static var absent: Self { get }
}

extension Timestamp: Packable {
    /// An instant 292 million years ago; what is stored begins in 1970.
    @inlinable public static var absent: Timestamp { Timestamp(milliseconds: .min) }
}

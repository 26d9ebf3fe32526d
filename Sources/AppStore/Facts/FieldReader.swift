internal import Ledger

/// Reads the members of one decoded object, and notes what cannot be read.
///
/// It never fails: what cannot be read, or what a database column cannot hold, is nil and leaves
/// an anomaly `field:problem`. A member that is absent or null is nil and no anomaly.
struct FieldReader {
    private let object: JSONValue
    private let prefix: String
    private(set) var anomalies: [String] = []
    /// Whether a value was read that no vocabulary has.
    private(set) var hasUnknownValue = false

    init(_ object: JSONValue, prefix: String = "") {
        self.object = object
        self.prefix = prefix
    }

    private mutating func note(_ name: String, _ problem: String) {
        anomalies.append("\(prefix)\(name):\(problem)")
    }

    private func value(_ key: String) -> JSONValue? {
        guard let value = object[key], !value.isNull else { return nil }
        return value
    }

    mutating func text(_ key: String, _ name: String) -> String? {
        guard let value = value(key) else { return nil }
        guard value.kind == .string || value.kind == .number else {
            note(name, "not_text")
            return nil
        }
        guard let text = Lenient.text(value) else {
            note(name, "lone_surrogate")
            return nil
        }
        guard !text.utf8.contains(0) else {
            note(name, "nul_character")
            return nil
        }
        return text
    }

    mutating func symbol(_ key: String, _ name: String) -> Symbol? {
        text(key, name).map { Symbol($0) }
    }

    mutating func appleID(_ key: String, _ name: String) -> AppleID? {
        text(key, name).map { AppleID($0) }
    }

    /// A UUID; an empty text is one that was never set.
    mutating func uniqueID(_ key: String, _ name: String) -> UniqueID? {
        guard let text = text(key, name), !text.isEmpty else { return nil }
        guard let id = UniqueID(text) else {
            note(name, "not_a_uuid")
            return nil
        }
        return id
    }

    mutating func word<Word: OpenVocabulary>(_ key: String, _ name: String) -> Word? {
        guard let text = text(key, name) else { return nil }
        let word = Word(text)
        if word.unknownText != nil { hasUnknownValue = true }
        return word
    }

    mutating func int64(_ key: String, _ name: String) -> Int64? {
        guard let value = value(key) else { return nil }
        do { return try Lenient.integerValue(value) } catch {
            note(name, error.code == .integerOverflow ? "overflow" : "not_an_integer")
            return nil
        }
    }

    mutating func int32(_ key: String, _ name: String) -> Int32? {
        guard let number = int64(key, name) else { return nil }
        guard let small = Int32(exactly: number) else {
            note(name, "overflow")
            return nil
        }
        return small
    }

    /// A number of a vocabulary; another one is kept and counts as unknown.
    mutating func code(_ key: String, _ name: String, known: ClosedRange<Int32>) -> Int32? {
        guard let code = int32(key, name) else { return nil }
        if !known.contains(code) { hasUnknownValue = true }
        return code
    }

    mutating func instant(_ key: String, _ name: String) -> Timestamp? {
        guard let milliseconds = int64(key, name) else { return nil }
        let instant = Timestamp(milliseconds: milliseconds)
        guard instant.isStorable else {
            note(name, "out_of_range")
            return nil
        }
        return instant
    }

    mutating func bool(_ key: String, _ name: String) -> Bool? {
        guard let value = value(key) else { return nil }
        guard let bool = Lenient.bool(value) else {
            note(name, "not_a_boolean")
            return nil
        }
        return bool
    }

    /// A reader of an object within; what it notes is taken over by ``take(_:)``.
    mutating func object(_ key: String, _ name: String) -> FieldReader? {
        guard let value = value(key) else { return nil }
        guard value.kind == .object else {
            note(name, "not_an_object")
            return nil
        }
        return FieldReader(value, prefix: prefix)
    }

    /// Takes over what another reader noted.
    mutating func take(_ other: FieldReader) {
        anomalies += other.anomalies
        hasUnknownValue = hasUnknownValue || other.hasUnknownValue
    }

    /// The text or the number of a member, and nothing noted where there is neither.
    func plainText(_ key: String) -> String? { value(key).flatMap { Lenient.text($0) } }

    mutating func noteUnreadable(_ name: String, _ problem: String) { note(name, problem) }

    mutating func missing(_ name: String) { note(name, "missing") }
}

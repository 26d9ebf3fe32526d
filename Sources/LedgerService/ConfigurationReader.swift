internal import Ledger

/// Reads one object of a configuration file field by field, and notes what is wrong on the way.
///
/// A field that was never asked for is an unknown one. The problems of a whole file are gathered
/// in one place, so that its owner sees them all at once.
final class ConfigurationReader {
    /// The problems of a file.
    private final class Problems {
        var list: [ConfigurationError.Problem] = []
    }

    private let path: String
    private let fields: [String: ConfigurationValue]
    private let found: Problems
    private var asked: [String] = []

    /// Begins with a file's outermost value.
    convenience init(_ value: ConfigurationValue) {
        self.init(value, path: "", found: Problems(), shape: "an object: {\"apps\": […]}")
    }

    private init(_ value: ConfigurationValue, path: String, found: Problems, shape: String) {
        self.path = path
        self.found = found
        if case .object(let fields) = value {
            self.fields = fields
        } else {
            fields = [:]
            found.list.append(.init(field: path, message: "\(value.shape); wanted is \(shape)"))
        }
    }

    /// All that was found wrong so far.
    var problems: [ConfigurationError.Problem] { found.list }

    /// Notes a problem with a field.
    func report(_ field: String, _ message: String) {
        found.list.append(.init(field: full(field), message: message))
    }

    /// Whether the field is there and not null.
    func has(_ name: String) -> Bool { fields[name].map { $0 != .null } ?? false }

    /// Whether the field holds a list.
    func isList(_ name: String) -> Bool {
        if case .list = fields[name] { true } else { false }
    }

    /// A text that may be missing.
    func string(_ name: String) -> String? {
        guard let value = value(name) else { return nil }
        if case .string(let text) = value, !text.isEmpty { return text }
        report(name, "\(value.shape); wanted is a text")
        return nil
    }

    /// A text that must be there.
    func required(_ name: String, like example: String) -> String? {
        if let text = string(name) { return text }
        if !has(name) { report(name, "missing; wanted is a text such as \"\(example)\"") }
        return nil
    }

    /// A truth value that may be missing.
    func bool(_ name: String) -> Bool? {
        guard let value = value(name) else { return nil }
        if case .bool(let truth) = value { return truth }
        report(name, "\(value.shape); wanted is true or false")
        return nil
    }

    /// A whole number that may be missing.
    func integer(_ name: String, in range: ClosedRange<Int64>, remedy: String) -> Int64? {
        guard let value = value(name) else { return nil }
        guard case .integer(let number) = value else {
            if case .string(let text) = value, let number = Int64(text), range.contains(number) {
                report(name, "the text \"\(text)\"; write the number without quotes: \(number)")
            } else {
                report(name, "\(value.shape); wanted is a whole number: \(remedy)")
            }
            return nil
        }
        guard range.contains(number) else {
            report(name, "\(number) is out of range: \(remedy)")
            return nil
        }
        return number
    }

    /// A whole number out of a few that may be missing.
    func integer(_ name: String, oneOf allowed: [Int64], remedy: String) -> Int? {
        guard let number = integer(name, in: .min ... .max, remedy: remedy) else { return nil }
        guard allowed.contains(number) else {
            report(name, "\(number) is not possible: \(remedy)")
            return nil
        }
        return Int(number)
    }

    /// A word out of a closed list that may be missing.
    func word<Word: RawRepresentable & CaseIterable>(_ name: String, _ type: Word.Type) -> Word?
    where Word.RawValue == String {
        guard let text = string(name) else { return nil }
        if let word = Word(rawValue: text) { return word }
        let allowed = Word.allCases.map(\.rawValue)
        let hint = nearest(to: text, among: allowed).map { "; did you mean \"\($0)\"?" } ?? ""
        report(name, "\"\(text)\" is none of \(allowed.joined(separator: ", "))\(hint)")
        return nil
    }

    /// A list of texts that may be missing.
    func strings(_ name: String) -> [String] {
        guard let value = value(name) else { return [] }
        guard case .list(let elements) = value else {
            report(name, "\(value.shape); wanted is a list of texts: [\"…\"]")
            return []
        }
        var result: [String] = []
        for (index, element) in elements.enumerated() {
            if case .string(let text) = element, !text.isEmpty {
                result.append(text)
            } else {
                report("\(name)[\(index)]", "\(element.shape); wanted is a text")
            }
        }
        return result
    }

    /// The elements of a list of objects that may be missing.
    func list(_ name: String, of shape: String) -> [ConfigurationReader] {
        guard let value = value(name) else { return [] }
        guard case .list(let elements) = value else {
            report(name, "\(value.shape); wanted is a list: \(shape)")
            return []
        }
        return elements.enumerated().map { index, element in
            child(element, at: "\(name)[\(index)]", shape: shape)
        }
    }

    /// The members of an object whose names are free, in the order of their names.
    func members(_ name: String, of shape: String) -> [(String, ConfigurationReader)] {
        guard let value = value(name) else { return [] }
        guard case .object(let members) = value else {
            report(name, "\(value.shape); wanted is an object: {\"product.id\": \(shape)}")
            return []
        }
        return members.sorted { $0.key < $1.key }.map { id, member in
            (id, child(member, at: "\(name)[\"\(id)\"]", shape: shape))
        }
    }

    /// An object that may be missing.
    func object(_ name: String) -> ConfigurationReader? {
        value(name).map { child($0, at: name, shape: "an object: {…}") }
    }

    /// `"deny"`, `"until_grace_ends"`, `"allow"` or `{"days": N}`.
    func billingRetryAccess(_ name: String) -> BillingRetryAccess? {
        guard let value = value(name) else { return nil }
        switch value {
        case .string("deny"): return .deny
        case .string("until_grace_ends"): return .untilGraceEnds
        case .string("allow"): return .allow
        case .object:
            let reader = child(value, at: name, shape: "{\"days\": 7}")
            let days = reader.integer(
                "days",
                in: 1...60,
                remedy: "1 to 60, as long as Apple retries"
            )
            if days == nil, !reader.has("days") { reader.report("days", "missing") }
            reader.refuseUnknownKeys()
            return days.map { .days(Int($0)) }
        default:
            report(
                name,
                "\(value.shape); wanted is \"deny\", \"until_grace_ends\", \"allow\" "
                    + "or {\"days\": N} with N up to 60"
            )
            return nil
        }
    }

    /// Notes every field that nobody asked for, with the field that was most likely meant.
    func refuseUnknownKeys() {
        for name in fields.keys.sorted() where !asked.contains(name) {
            let hint = nearest(to: name, among: asked).map { "; did you mean \"\($0)\"?" }
            let known = asked.joined(separator: ", ")
            report(name, "unknown field\(hint ?? "; known here are \(known)")")
        }
    }

    /// The field's value, nil where it is missing or null.
    private func value(_ name: String) -> ConfigurationValue? {
        if !asked.contains(name) { asked.append(name) }
        guard let value = fields[name], value != .null else { return nil }
        return value
    }

    private func child(
        _ value: ConfigurationValue,
        at field: String,
        shape: String
    ) -> ConfigurationReader {
        ConfigurationReader(value, path: full(field), found: found, shape: shape)
    }

    private func full(_ field: String) -> String {
        path.isEmpty ? field : "\(path).\(field)"
    }
}

internal import AppStore

/// A JSON value of a configuration file.
enum ConfigurationValue: Hashable, Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    case fraction(String)
    case string(String)
    case list([ConfigurationValue])
    case object([String: ConfigurationValue])

    /// What it is, for a message; a text is shown shortened, since it may be a secret.
    var shape: String {
        switch self {
        case .null: "null"
        case .bool(let truth): "\(truth)"
        case .integer(let number): "the number \(number)"
        case .fraction(let number): "the number \(number)"
        case .string(let text): text.count <= 24 ? "the text \"\(text)\"" : "a text"
        case .list: "a list"
        case .object: "an object"
        }
    }
}

extension ConfigurationValue {
    /// Takes whatever JSON value there is.
    init(_ value: JSONValue) {
        switch value.kind {
        case .null, .key: self = .null
        case .true: self = .bool(true)
        case .false: self = .bool(false)
        case .number:
            if let number = try? value.int64() {
                self = .integer(number)
            } else {
                self = .fraction(value.numberText ?? "")
            }
        case .string: self = .string(value.text ?? "\u{FFFD}")
        case .array: self = .list(value.elements.map { ConfigurationValue($0) })
        case .object:
            var members: [String: ConfigurationValue] = [:]
            for (name, member) in value.members { members[name] = ConfigurationValue(member) }
            self = .object(members)
        }
    }
}

/// A JSON value of a configuration file.
enum ConfigurationValue: Hashable, Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    case fraction(Double)
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

extension ConfigurationValue: Decodable {
    /// Takes whatever JSON value there is.
    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let truth = try? container.decode(Bool.self) {
            self = .bool(truth)
        } else if let number = try? container.decode(Int64.self) {
            self = .integer(number)
        } else if let number = try? container.decode(Double.self) {
            self = .fraction(number)
        } else if let text = try? container.decode(String.self) {
            self = .string(text)
        } else if let list = try? container.decode([ConfigurationValue].self) {
            self = .list(list)
        } else {
            self = .object(try container.decode([String: ConfigurationValue].self))
        }
    }
}

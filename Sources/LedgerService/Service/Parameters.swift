internal import Crypto
internal import EventLog
internal import HTTP
internal import Ledger

/// The query of a request, of which every name must be known and none given twice.
struct Parameters {
    private let values: [String: String]
    /// Which list is asked for, in some letters: the path with every parameter but those that say
    /// which part of it, as of when and in what form.
    let list: String

    private static let partial: Set<String> = [
        "cursor", "limit", "at", "after", "wait_ms", "format",
    ]

    init(_ request: HTTPRequest, allowing names: [String]) throws(ServiceProblem) {
        var values: [String: String] = [:]
        for item in request.target.query {
            guard names.contains(item.name) else {
                let known = names.isEmpty ? "there is none" : names.joined(separator: ", ")
                throw .parameter(Self.shown(item.name), "is not known here; known: \(known)")
            }
            guard values.updateValue(item.value, forKey: item.name) == nil else {
                throw .parameter(item.name, "is given twice")
            }
        }
        self.values = values
        let wanted = values.filter { !Self.partial.contains($0.key) }.sorted { $0.key < $1.key }
        let parts = request.target.path + wanted.flatMap { ["?\($0.key)", $0.value] }
        let text = parts.map { "\($0.utf8.count):\($0)" }.joined()
        list = Base64URL.encode(Array(SHA256.digest(Array(text.utf8)).prefix(9)))
    }

    /// A stranger's word, short and without control characters.
    private static func shown(_ text: String) -> String {
        String(text.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7F }.prefix(40))
    }

    func text(_ name: String) -> String? { values[name] }

    /// An `originalTransactionId` or another stream's name, as far as one can be looked up.
    func stream(_ name: String) throws(ServiceProblem) -> String? {
        guard let text = values[name] else { return nil }
        return try Self.stream(text, name)
    }

    static func stream(_ text: String, _ name: String) throws(ServiceProblem) -> String {
        guard !text.isEmpty, text.utf8.count <= 200, !text.utf8.contains(0) else {
            throw .parameter(name, "1 to 200 bytes without a zero byte")
        }
        return text
    }

    func owner(_ name: String) throws(ServiceProblem) -> UniqueID? {
        guard let text = values[name] else { return nil }
        guard let id = UniqueID(text) else { throw .parameter(name, "a UUID") }
        return id
    }

    func instant(_ name: String) throws(ServiceProblem) -> Timestamp? {
        guard let text = values[name] else { return nil }
        guard let instant = Timestamp(parsing: text) else {
            throw .parameter(
                name,
                "2026-01-31, 2026-01-31T12:00:00Z or milliseconds since 1970"
            )
        }
        return instant
    }

    /// What was known when: `known_at` or `known_at_position`, nil for what is known now.
    func knowledge() throws(ServiceProblem) -> Knowledge? {
        let instant = try instant("known_at")
        let position = try integer("known_at_position", in: 0...Int64.max)
        guard instant == nil || position == nil else {
            throw .parameter("known_at_position", "either this or known_at")
        }
        return instant.map { .instant($0) } ?? position.map { .position($0) }
    }

    func day(_ name: String) throws(ServiceProblem) -> String {
        // Ten digits would be an instant.
        guard let text = values[name], text.utf8.count == 10, text.contains("-"),
            Timestamp(parsing: text) != nil
        else {
            throw .parameter(name, "a day such as 2026-01-31")
        }
        return text
    }

    func integer(
        _ name: String,
        in range: ClosedRange<Int64>
    ) throws(ServiceProblem) -> Int64? {
        guard let text = values[name] else { return nil }
        guard let number = Int64(text), range.contains(number) else {
            throw .parameter(
                name,
                "a whole number from \(range.lowerBound) to \(range.upperBound)"
            )
        }
        return number
    }

    func word<Value: RawRepresentable & CaseIterable>(
        _ name: String,
        _ type: Value.Type
    ) throws(ServiceProblem) -> Value? where Value.RawValue == String {
        guard let text = values[name] else { return nil }
        guard let value = Value(rawValue: text) else {
            let words = Value.allCases.map(\.rawValue).joined(separator: ", ")
            throw .parameter(name, "one of \(words)")
        }
        return value
    }

    /// Production, unless Sandbox is asked for by name: test purchases never unlock anything real.
    func environment() throws(ServiceProblem) -> Environment {
        switch values["environment"] {
        case nil, "Production": return .production
        case "Sandbox": return .sandbox
        default: throw .parameter("environment", "Production or Sandbox")
        }
    }
}

/// A path with parameters: `/v1/things/{id}`.
public struct RouteTemplate: Hashable, Sendable, CustomStringConvertible {
    enum Segment: Hashable, Sendable {
        case literal(String)
        case parameter(String)
    }

    /// The template's text.
    public let description: String

    let segments: [Segment]

    /// Reads a template; one that is malformed is a programming error, and traps.
    public init(_ text: String) {
        precondition(text.first == "/", "the template \(text) does not begin with /")
        description = text
        segments =
            text == "/"
            ? []
            : text.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map {
                guard $0.first == "{" else {
                    precondition(!$0.isEmpty && !$0.contains("{"), "\(text) is no template")
                    return .literal(String($0))
                }
                precondition($0.last == "}" && $0.count > 2, "\(text) is no template")
                return .parameter(String($0.dropFirst().dropLast()))
            }
        precondition(Set(parameters).count == parameters.count, "\(text) repeats a parameter")
    }

    /// The parameters' names, in order.
    public var parameters: [String] {
        segments.compactMap {
            guard case .parameter(let name) = $0 else { return nil }
            return name
        }
    }

    /// What two templates have in common that match the same paths.
    var shape: [String?] {
        segments.map {
            guard case .literal(let text) = $0 else { return nil }
            return text
        }
    }

    /// The parameters' values where the path matches; an empty segment is no value.
    func match(_ path: [String]) -> [String: String]? {
        guard path.count == segments.count else { return nil }
        var values: [String: String] = [:]
        for (segment, text) in zip(segments, path) {
            switch segment {
            case .literal(let literal):
                guard literal == text else { return nil }
            case .parameter(let name):
                guard !text.isEmpty else { return nil }
                values[name] = text
            }
        }
        return values
    }
}

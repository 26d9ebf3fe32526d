/// Finds the route of a request.
public struct Router: Sendable {
    /// What the router finds.
    enum Match: Sendable {
        case route(Route, parameters: [String: String])
        case notFound
        /// The path is there, with other methods.
        case otherMethods([HTTPMethod])
    }

    /// All routes, in the order in which they were given.
    public let routes: [Route]

    /// The routes without a parameter, by path.
    private let plain: [[String]: [Route]]

    /// The others; those with a literal further to the left first.
    private let parametrised: [(template: RouteTemplate, routes: [Route])]

    /// Makes a router; two routes that match the same requests are a programming error, and trap.
    public init(_ routes: [Route]) {
        self.routes = routes
        var plain: [[String]: [Route]] = [:]
        var shapes: [[String?]: [Route]] = [:]
        for route in routes {
            let shape = route.template.shape
            precondition(
                shapes[shape, default: []].allSatisfy { $0.method != route.method },
                "\(route.method) \(route.template) is there twice"
            )
            shapes[shape, default: []].append(route)
            let literals = shape.compactMap(\.self)
            if literals.count == shape.count { plain[literals, default: []].append(route) }
        }
        self.plain = plain
        parametrised =
            shapes
            .filter { $0.key.contains(nil) }
            .sorted { one, other in
                if one.key.count != other.key.count { return one.key.count < other.key.count }
                for (left, right) in zip(one.key, other.key) where (left == nil) != (right == nil) {
                    return left != nil
                }
                return one.value[0].template.description < other.value[0].template.description
            }
            .map { (template: $0.value[0].template, routes: $0.value) }
    }

    func match(_ method: HTTPMethod, _ path: [String]) -> Match {
        if let routes = plain[path] { return match(method, routes, [:]) }
        for candidate in parametrised where candidate.template.match(path) != nil {
            // Templates of one shape may name their parameters differently.
            return match(method, candidate.routes, nil, path)
        }
        return .notFound
    }

    /// The methods that are answered somewhere.
    var methods: [HTTPMethod] { Self.allowed(routes) }

    private func match(
        _ method: HTTPMethod,
        _ routes: [Route],
        _ parameters: [String: String]?,
        _ path: [String] = []
    ) -> Match {
        let wanted = method == .head ? HTTPMethod.get : method
        guard let route = routes.first(where: { $0.method == wanted }) else {
            return .otherMethods(Self.allowed(routes))
        }
        return .route(route, parameters: parameters ?? route.template.match(path) ?? [:])
    }

    private static func allowed(_ routes: [Route]) -> [HTTPMethod] {
        HTTPMethod.known.filter { method in
            routes.contains { $0.method == method || method == .head && $0.method == .get }
        }
    }
}

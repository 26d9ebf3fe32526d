import Testing

@testable import HTTP

@Suite struct RouterTests {
    static let router = Router([
        route(.get, "/"), route(.get, "/a"), route(.post, "/a"), route(.get, "/a/{x}"),
        route(.delete, "/a/{y}"), route(.get, "/a/b"), route(.get, "/{z}/c/{x}"),
        route(.get, "/a/{x}/d"),
    ])

    static func route(_ method: HTTPMethod, _ template: String) -> Route {
        Route(method, template) { _ in .answer(HTTPResponse(status: 200)) }
    }

    func found(_ method: HTTPMethod, _ path: String) throws -> String {
        let target = try #require(RequestTarget(path.utf8))
        switch Self.router.match(method, target.path) {
        case .route(let route, let parameters):
            let values = parameters.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
            return ([route.template.description] + values).joined(separator: " ")
        case .notFound: return "404"
        case .otherMethods(let methods): return "405 \(methods)"
        }
    }

    @Test(arguments: [
        ("/", "/"), ("/a", "/a"), ("/a/b", "/a/b"), ("/a/q", "/a/{x} x=q"), ("/a/", "404"),
        ("/b", "404"), ("/a/q/d", "/a/{x}/d x=q"), ("/q/c/r", "/{z}/c/{x} x=r z=q"),
        ("/a/c/d", "/a/{x}/d x=c"), ("/a/%2F", "/a/{x} x=/"), ("/A", "404"), ("/a/c/", "404"),
    ])
    func aPathFindsItsRoute(_ path: String, _ expected: String) throws {
        #expect(try found(.get, path) == expected)
    }

    @Test func aMethodThatIsNotThereIsToldFromAPathThatIsNot() throws {
        #expect(try found(.put, "/a") == "405 [GET, HEAD, POST]")
        #expect(try found(.post, "/a/q") == "405 [GET, HEAD, DELETE]")
        #expect(try found(.put, "/nowhere") == "404")
        #expect(try found(.head, "/a") == "/a")
        #expect(try found(.delete, "/a/q") == "/a/{y} y=q")
    }

    @Test func theRoutesCanBeListed() {
        #expect(Self.router.routes.count == 8)
        #expect(Self.router.routes[6].template.parameters == ["z", "x"])
    }

    @Test func twoRoutesForTheSameRequestsTrap() async {
        await #expect(processExitsWith: .failure) {
            _ = Router([RouterTests.route(.get, "/a/{x}"), RouterTests.route(.get, "/a/{y}")])
        }
    }
}

import AppStore
import Foundation
import HTTP
import Ledger
import Testing

@testable import LedgerService

/// The OpenAPI document says what the routes are, no more and no less.
@Suite struct OpenAPITests {
    private static let routes = Service.routes { nil }

    /// The document as it is served.
    private static func document() throws -> [String: Any] {
        let route = try #require(routes.first { $0.template.description == "/openapi.json" })
        #expect(route.method == .get)
        let object = try JSONSerialization.jsonObject(with: Data(Service.documentBytes))
        return try #require(object as? [String: Any])
    }

    private static func operations() throws -> [String: [String: Any]] {
        let paths = try #require(try document()["paths"] as? [String: [String: [String: Any]]])
        var result: [String: [String: Any]] = [:]
        for (path, item) in paths {
            for (method, operation) in item {
                result["\(method.uppercased()) \(path)"] = operation
            }
        }
        return result
    }

    /// What a `$ref` of the document stands for, or the value itself.
    private static func resolved(_ value: Any, _ document: [String: Any]) throws -> [String: Any] {
        let object = try #require(value as? [String: Any])
        guard let reference = object["$ref"] as? String else { return object }
        var found: Any = document
        for name in reference.split(separator: "/").dropFirst() {
            found = try #require((found as? [String: Any])?[String(name)], "\(reference)")
        }
        return try #require(found as? [String: Any])
    }

    @Test func eachRouteIsInTheDocumentAndNothingElseIs() throws {
        let documented = Set(try Self.operations().keys)
        let routed = Set(Self.routes.map { "\($0.method) \($0.template)" })
        #expect(documented == routed)
        #expect(routed.count == Self.routes.count)
    }

    @Test func thePathsParametersAreThoseOfTheTemplates() throws {
        let document = try Self.document()
        for (name, operation) in try Self.operations() {
            let route = try #require(
                Self.routes.first { "\($0.method) \($0.template)" == name }
            )
            let parameters = try (operation["parameters"] as? [Any] ?? []).map {
                try Self.resolved($0, document)
            }
            let named = parameters.filter { $0["in"] as? String == "path" }
                .compactMap { $0["name"] as? String }
            #expect(named == route.template.parameters, "\(name)")
        }
    }

    /// The answers that an operation can have, or the parts that no operation has.
    private static func reasons(_ response: [String: Any]) throws -> Set<String> {
        guard let content = response["content"] as? [String: [String: Any]],
            let schema = content["application/problem+json"]?["schema"] as? [String: Any]
        else { return [] }
        let parts = try #require(schema["allOf"] as? [[String: Any]])
        let properties = try #require(parts.last?["properties"] as? [String: [String: Any]])
        return Set(try #require(properties["reason"]?["enum"] as? [String]))
    }

    @Test func theReasonsAreThoseThatTheProgramGives() throws {
        let document = try Self.document()
        let components = try #require(document["components"] as? [String: Any])
        let responses = try #require(components["responses"] as? [String: [String: Any]])
        let documented = try responses.values.reduce(into: Set<String>()) {
            $0.formUnion(try Self.reasons($1))
        }
        let problems: [ServiceProblem] = [
            .parameter("", ""), .notFound(""), .tooLarge(""), .unauthorized, .forbidden(""),
            .tooMany, .address, .busy, .databaseUnavailable, .outOfDate, .behind(1), .failed,
            .idempotencyMismatch, .selfApproval, .notOpen(""), .appStoreUnavailable(""),
            .epochEnded(1, cutAfter: 0, present: 2),
        ]
        // These are never an answer: the connection is cut, or the server below answers.
        let silent: Set<Refusal> = [
            .connectionLimit, .addressLimit, .requestTooSlow, .answerTooSlow, .malformed,
        ]
        let kept: Set = ["stored", "duplicate", "conflict", "quarantined"]
        let given = Set(problems.map(\.problem.reason))
            .union(Refusal.allCases.filter { !silent.contains($0) }.map(\.rawValue))
            .union(Set(Webhook.Measures.reasons).subtracting(kept))
        #expect(documented.subtracting(given) == [], "documented, but never given")
        #expect(given.subtracting(documented) == [], "given, but not documented")
        for problem in problems {
            let status = try responses.values.filter {
                try Self.reasons($0).contains(problem.problem.reason)
            }
            #expect(!status.isEmpty, "\(problem.problem.reason)")
        }

        // Of the webhook's own, each is with the status that it is answered with.
        let deliver = try #require(try Self.operations()["POST /v1/notifications"])
        let answers = try #require(deliver["responses"] as? [String: Any])
        for reason in Reason.allCases {
            let status = reason.isTemporary ? "503" : reason == .tooLarge ? "413" : "400"
            let answer = try Self.resolved(try #require(answers[status]), document)
            #expect(try Self.reasons(answer).contains(reason.rawValue), "\(reason)")
        }
    }

    @Test func everyReferenceLeadsSomewhere() throws {
        let document = try Self.document()
        func visit(_ value: Any) throws {
            if let list = value as? [Any] { for item in list { try visit(item) } }
            guard let object = value as? [String: Any] else { return }
            if object["$ref"] is String { _ = try Self.resolved(object, document) }
            for item in object.values { try visit(item) }
        }
        try visit(document)
    }

    @Test func aCursorIsReadAsItWasWrittenAndNothingElseIs() throws {
        let cursor = Cursor(
            of: "list",
            at: .latest,
            last: SubscriptionKey(appID: 7, stream: "a b %/é")
        )
        #expect(Cursor(cursor.text) == cursor)
        for text in ["", "x", "AAAA", String(cursor.text.dropLast(4)), cursor.text + "!"] {
            #expect(Cursor(text) != cursor, "\(text)")
        }
        let senseless = Cursor(
            of: "list",
            at: Timestamp(milliseconds: -1),
            last: cursor.last
        )
        #expect(Cursor(senseless.text) == nil)
    }
}

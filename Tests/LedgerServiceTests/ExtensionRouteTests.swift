import AppStore
import EventLog
import Foundation
import HTTP
import Ledger
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import LedgerService

/// Extensions over HTTP: whose token it is decides who asked.
struct ExtensionRouteTests {
    /// A service over a bench's ledger, with tokens.
    private final class Served {
        let bench: ExtensionBench
        let service: Service
        let client: HTTPClient
        var tokens: [String: String] = [:]
        private let nowhere = FileHandle(forWritingAtPath: "/dev/null")

        init() throws {
            bench = try ExtensionBench()
            let connect = bench.log.connect
            let now = bench.now
            var options = Service.Options(
                http: HTTPServerConfiguration(address: .loopback, port: 0)
            )
            options.extensionGateway = bench.apple
            options.extensions.approvesOverDays = 30
            service = try Service(
                options: options,
                verifier: Verifier(anchors: TrustAnchors(), apps: []),
                sessions: .init(
                    appender: connect,
                    projector: connect,
                    reader: connect,
                    auditor: connect
                ),
                log: ServiceLog(descriptor: nowhere?.fileDescriptor ?? 2) { now },
                now: { now }
            )
            client = try HTTPClient()
            let admin = try bench.log.connect()
            for (name, role) in [
                ("olga", APIToken.Role.operator), ("peter", .operator), ("anna", .auditor),
                ("shop", .reader),
            ] {
                tokens[name] = try APITokens(admin).create(role, name: name, by: "test").token
            }
            try bench.buy()
        }

        deinit { service.stop(within: .seconds(5)) }

        func send(
            _ method: HTTPMethod,
            _ path: String,
            _ token: String,
            _ body: String = "",
            key: String? = nil
        ) throws -> (status: Int, body: [String: Any], text: String) {
            var headers = HTTPHeaders()
            headers.add("Authorization", "Bearer \(tokens[token] ?? "")")
            if !body.isEmpty { headers.add("Content-Type", "application/json") }
            if let key { headers.add("Idempotency-Key", key) }
            let answer = try client.send(
                HTTPClientRequest(
                    method,
                    HTTPURL("http://127.0.0.1:\(service.port)\(path)"),
                    headers: headers,
                    body: Array(body.utf8)
                )
            )
            let object = try? JSONSerialization.jsonObject(with: Data(answer.body))
            return (
                answer.status, object as? [String: Any] ?? [:],
                String(decoding: answer.body, as: UTF8.self)
            )
        }
    }

    private static func wish(_ days: Int, ticket: String = "SUP-1", more: String = "") -> String {
        """
        {"original_transaction_id":"1000","days":\(days),"reason":"service-issue",\
        "ticket":"\(ticket)"\(more)}
        """
    }

    @Test func theTokensNameIsWhoAskedWhateverTheBodySays() throws {
        let served = try Served()
        let body = Self.wish(7, more: ",\"on_behalf_of\":\"the support desk\"")
        let first = try served.send(.post, "/v1/extensions", "olga", body, key: "k1")
        #expect(first.status == 201)
        #expect(first.body["outcome"] as? String == "accepted")
        let again = try served.send(.post, "/v1/extensions", "olga", body, key: "k1")
        #expect(again.status == 200)
        #expect(again.body["repeated"] as? Bool == true)
        let other = try served.send(.post, "/v1/extensions", "olga", Self.wish(8), key: "k1")
        #expect(other.status == 422)
        #expect(other.body["reason"] as? String == "idempotency_mismatch")
        let twice = try served.send(.post, "/v1/extensions", "olga", Self.wish(7), key: "k2")
        #expect(twice.status == 409)
        #expect(twice.body["refusal_rule"] as? String == "duplicate_ticket")
        #expect(served.bench.apple.orders.withLock { $0.count } == 1)
        let row = try #require(try served.bench.audit().first { $0["outcome"] == "accepted" })
        #expect(row["operator_authenticated"] == "token:olga")
        #expect(row["on_behalf_of"] == "the support desk")
        #expect(row["channel"] == "http")
        #expect(row["client_ip"] == "127.0.0.1")
        // Who did it on which ticket is for whoever may ask for the audit or extend.
        for (token, sees) in [("shop", false), ("olga", true), ("anna", true)] {
            for what in ["events", "explanation"] {
                let answer = try served.send(.get, "/v1/subscriptions/1000/\(what)", token)
                #expect(answer.status == 200, "\(answer.text)")
                #expect(answer.text.contains("extension_requested"))
                #expect(answer.text.contains("token:olga") == sees, "\(token) \(answer.text)")
                #expect(answer.text.contains("SUP-") == sees, "\(token)")
            }
        }
    }

    @Test func whoMayNotIsTurnedAway() throws {
        let served = try Served()
        for token in ["shop", "anna"] {
            let answer = try served.send(.post, "/v1/extensions", token, Self.wish(7), key: "k")
            #expect(answer.status == 403, "\(token)")
        }
        for token in ["shop", "olga"] {
            #expect(try served.send(.get, "/v1/extensions", token).status == 403, "\(token)")
        }
        #expect(served.bench.apple.orders.withLock { $0.isEmpty })
    }

    @Test(arguments: [
        "", "[]", "{\"days\":7}",
        "{\"original_transaction_id\":\"1000\",\"days\":7,\"ticket\":\"x\"}",
        wish(91), wish(0), wish(7, more: ",\"operator\":\"the boss\""),
        wish(7, more: ",\"again\":\"yes\""), wish(7, ticket: ""),
        wish(7, more: ",\"reason\":\"other\""),
        "{\"original_transaction_id\":\"1000\",\"days\":7,\"reason\":4,\"ticket\":\"x\"}",
    ])
    func d09ABodyWithPartsMissingIsRefusedBeforeAnyCall(_ body: String) throws {
        let served = try Served()
        let answer = try served.send(.post, "/v1/extensions", "olga", body, key: "k")
        #expect([400, 415].contains(answer.status), "\(answer.text)")
        let keyless = try served.send(.post, "/v1/extensions", "olga", Self.wish(7))
        #expect(keyless.status == 400)
        #expect(served.bench.apple.orders.withLock { $0.isEmpty })
        #expect(try served.bench.log.count("ledger.extension_request") == 0)
    }

    @Test func anotherTokenApprovesAndItsOwnDoesNot() throws {
        let served = try Served()
        let asked = try served.send(.post, "/v1/extensions", "olga", Self.wish(60), key: "k")
        #expect(asked.status == 202)
        #expect(asked.body["approval_rule"] as? String == "days_over_30")
        let id = try #require(asked.body["request_identifier"] as? String)
        let path = "/v1/extensions/\(id)/decision"
        let own = try served.send(.post, path, "olga", "{\"decision\":\"approve\"}")
        #expect(own.status == 403)
        #expect(own.body["reason"] as? String == "self_approval")
        let approved = try served.send(.post, path, "peter", "{\"decision\":\"approve\"}")
        #expect(approved.status == 201)
        let late = try served.send(.post, path, "peter", "{\"decision\":\"reject\"}")
        #expect(late.status == 409)
        #expect(late.body["reason"] as? String == "not_open")
    }

    @Test func theAuditComesInPagesAndAsATable() throws {
        let served = try Served()
        for number in 0..<5 {
            let wish = Self.wish(7, ticket: "SUP-\(number)")
            _ = try served.send(.post, "/v1/extensions", "olga", wish, key: "k\(number)")
        }
        #expect(try served.bench.audit().count == 5)
        var seen: [String] = []
        var cursor = ""
        repeat {
            let page = try served.send(.get, "/v1/extensions?limit=2\(cursor)", "anna")
            #expect(page.status == 200)
            let rows = try #require(page.body["extensions"] as? [[String: Any]])
            seen += rows.compactMap { $0["ticket_id"] as? String }
            cursor = (page.body["next_cursor"] as? String).map { "&cursor=\($0)" } ?? ""
            guard !cursor.isEmpty else { break }
            let foreign = try served.send(.get, "/v1/extensions?operator=olga\(cursor)", "anna")
            #expect(foreign.status == 400, "in another list it would pass rows over")
        } while true
        #expect(seen.sorted() == (0..<5).map { "SUP-\($0)" })
        let filtered = try served.send(
            .get,
            "/v1/extensions?outcome=accepted&operator=olga&reason=service-issue&format=csv",
            "anna"
        )
        let lines = filtered.text.split(separator: "\r\n")
        #expect(lines.count == 3)
        #expect(lines[0].hasPrefix("original_transaction_id,environment,"))
        let nobody = try served.send(.get, "/v1/extensions?operator=nobody", "anna")
        #expect((nobody.body["extensions"] as? [Any])?.isEmpty == true)
        #expect(try served.send(.get, "/v1/extensions?outcome=done", "anna").status == 400)
    }

    @Test func aLostAnswerIsSettledOverHTTPToo() throws {
        let served = try Served()
        served.bench.apple.manner.withLock { $0 = .losesTheAnswer }
        let asked = try served.send(.post, "/v1/extensions", "olga", Self.wish(7), key: "k")
        #expect(asked.status == 202)
        #expect(asked.body["outcome"] as? String == "unknown")
        let id = try #require(asked.body["request_identifier"] as? String)
        served.bench.apple.clock.withLock { $0 = $0.adding(.minutes(1)) }
        let path = "/v1/extensions/\(id)/resolution"
        let settled = try served.send(.post, path, "peter", "{}")
        #expect(settled.status == 201)
        #expect(settled.body["outcome"] as? String == "confirmed")
    }
}

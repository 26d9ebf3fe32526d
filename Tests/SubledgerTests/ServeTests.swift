import Dispatch
import Foundation
import FoundationNetworking
import Synchronization
import TestSupport
import Testing

/// The service as Apple and other services meet it: the built program, HTTP and a database.
@Suite struct ServeTests {
    @Test func whatIsDeliveredIsAnsweredStoredAndShown() throws {
        let served = try ServedProgram(on: .shared, subscriptions: 12)
        let lines = try served.notifications()
        let token = try served.token("reader")
        for line in lines { #expect(served.deliver(line)?.status == 200) }
        let distinct = Set(lines).count
        #expect(try served.number("select count(*) from ledger.event") == distinct)
        let again = try #require(served.deliver(lines[0]))
        #expect(again.status == 200)
        #expect(again.object["outcome"] as? String == "duplicate")

        // What the HTTP interface answers is what the command line does.
        try served.waitUntilFolded()
        let listed = try served.run("entitlements", "--json", "--at", "2025-06-01")
        let all =
            try JSONSerialization.jsonObject(with: Data(listed.output.utf8)) as? [[String: Any]]
        let wanted = try #require(all)
        #expect(wanted.count >= 5)
        for row in wanted {
            let id = try #require(row["original_transaction_id"] as? String)
            let path = "/v1/entitlements?subscription=\(id)&environment=Sandbox"
            let answer = served.get("\(path)&at=2025-06-01&after=\(distinct)", token: token)
            let rows = answer?.object["entitlements"] as? [[String: Any]] ?? []
            #expect(rows.count == 1, "\(id)")
            #expect(
                rows.first.map { NSDictionary(dictionary: $0) } == NSDictionary(dictionary: row)
            )
            // Test purchases unlock nothing unless Sandbox is asked for by name.
            let production = served.get(
                path.replacing("&environment=Sandbox", with: ""),
                token: token
            )
            #expect((production?.object["entitlements"] as? [Any])?.isEmpty == true)
        }
        #expect(served.terminate() == 0)
        #expect(try served.run("audit", "verify").status == 0)
    }

    @Test func whoMayNotAskIsToldSo() throws {
        let served = try ServedProgram(on: .shared, subscriptions: 2)
        let lines = try served.notifications()
        #expect(served.deliver(lines[0])?.status == 200)
        let reader = try served.token("reader")
        let auditor = try served.token("auditor")
        let evidence = "/v1/events/1/evidence"
        #expect(served.get(evidence)?.status == 401)
        #expect(served.get(evidence, token: "subledger_000000000000_x")?.status == 401)
        #expect(served.get(evidence, token: reader)?.reason == "forbidden")
        let bytes = try #require(served.get(evidence, token: auditor))
        #expect(bytes.status == 200)
        #expect(lines[0].contains(String(decoding: bytes.body, as: UTF8.self)))
        #expect(bytes.body.count > 10_000)

        for path in ["/healthz", "/readyz"] { #expect(served.get(path)?.status == 200) }
        for path in ["/metrics", "/v1/events", "/v1/churn", "/v1/billing-recovery"] {
            #expect(served.get(path)?.reason == "unauthorized", "\(path)")
        }
        let metrics = try #require(served.get("/metrics", token: reader))
        let page = String(decoding: metrics.body, as: UTF8.self)
        #expect(page.contains("subledger_notifications_total{reason=\"stored\"} 1\n"))
        // What was set up is recorded in the log too, after the first delivery.
        #expect(page.contains("subledger_log_position "))
        #expect(!page.contains("subledger_log_position 0\n"))
    }

    private static let senseless: [(path: String, reason: String)] = [
        ("/v1/entitlements", "parameter"), ("/v1/entitlements?owner=x", "parameter"),
        ("/v1/entitlements?subscription=1&at=never", "parameter"),
        ("/v1/entitlements?subscription=1&subscription=2", "parameter"),
        ("/v1/entitlements?subscription=1&envrionment=Sandbox", "parameter"),
        ("/v1/entitlements?subscription=%00", "invalid_target"),
        ("/v1/entitlements?subscription=1&after=99&wait_ms=1", "behind"),
        ("/v1/entitlements?subscription=1&after=0&known_at=2025-01-01", "parameter"),
        ("/v1/entitlements?product=x&known_at=2025-01-01", "parameter"),
        ("/v1/entitlements?subscription=1&known_at=2025-01-01&known_at_position=0", "parameter"),
        ("/v1/entitlements?subscription=1&known_at_position=99", "parameter"),
        ("/v1/subscriptions/1/explanation?known_at_position=99", "parameter"),
        ("/v1/churn?from=2025-01-01", "parameter"),
        ("/v1/churn?from=2025-01-01&to=2025-02-01&zone=Mars/Olympus", "parameter"),
        ("/v1/churn?from=2025-01-01&to=2025-02-01&by=week", "parameter"),
        ("/v1/events/0/evidence", "parameter"), ("/v1/events/77/evidence", "not_found"),
        ("/v1/events?limit=0", "parameter"), ("/v1/events?after=7", "parameter"),
        ("/v1/events?after=999&epoch=1", "parameter"),
        ("/v1/events?after=999&epoch=1&wait_ms=20000", "parameter"),
        ("/v1/subscriptions/77/events", "not_found"),
        ("/v1/subscriptions/77/explanation", "not_found"), ("/v2/entitlements", "not_found"),
    ]

    @Test func aQuestionThatMakesNoSenseIsNamed() throws {
        let served = try ServedProgram(on: .shared, subscriptions: 1)
        let token = try served.token("auditor")
        for (path, reason) in Self.senseless {
            let answer = try #require(served.get(path, token: token))
            let wanted = reason == "behind" ? 504 : reason == "not_found" ? 404 : 400
            #expect(answer.status == wanted, "\(path)")
            #expect(answer.reason == reason, "\(path): \(answer.object)")
            #expect(answer.headers["Content-Type"] == "application/problem+json", "\(path)")
        }
    }

    @Test func theFeedWaitsForNewsAndGivesThemInOrder() throws {
        let served = try ServedProgram(on: .shared, subscriptions: 4)
        let lines = Array(Set(try served.notifications()))
        let token = try served.token("reader")
        let path = "/v1/events"
        let waited = Mutex<Int?>(nil)
        let isDone = DispatchSemaphore(value: 0)
        let url = served.url("\(path)?after=0&wait_ms=20000")
        DispatchQueue.global().async {
            var request = URLRequest(url: url)
            request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
            let answer = ServedProgram.send(request)
            waited.withLock { $0 = (answer?.object["events"] as? [Any])?.count }
            isDone.signal()
        }
        for line in lines { #expect(served.deliver(line)?.status == 200) }
        isDone.wait()
        #expect((waited.withLock { $0 } ?? 0) >= 1, "it was told of news")

        var positions: [Int] = []
        var after = 0
        while true {
            let page = try #require(
                served.get("\(path)?after=\(after)&epoch=1&limit=3", token: token)
            )
            let events = page.object["events"] as? [[String: Any]] ?? []
            if events.isEmpty { break }
            positions += events.compactMap { $0["position"] as? Int }
            after = page.object["next_after"] as? Int ?? 0
        }
        #expect(positions == Array(1...lines.count))
        let none = try #require(
            served.get("\(path)?after=\(after)&epoch=1&wait_ms=50", token: token)
        )
        #expect((none.object["events"] as? [Any])?.isEmpty == true)
        let all = try #require(served.get(path, token: token)?.object["events"] as? [[String: Any]])
        let stream = try #require(all.first?["stream"] as? String)
        let environment = try #require(all.first?["environment"] as? String)
        let events = "/v1/subscriptions/\(stream)/events?environment=\(environment)"
        let own = try #require(served.get("\(events)&after=999&epoch=1", token: token))
        #expect(own.reason == "parameter", "nor do a subscription's events begin beyond the end")
    }
}

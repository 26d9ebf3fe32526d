import Foundation
import FoundationNetworking
import TestSupport
import Testing

/// What other services ask, in pages, tables and only when there is news.
@Suite struct QueryTests {
    /// The service with a company's events in it.
    private static func served() throws -> ServedProgram {
        let served = try ServedProgram(on: .shared, subscriptions: 30)
        let run = try served.run(
            "ingest",
            "n.ndjson",
            "--root",
            "r.pem",
            "--accept-bundle",
            "com.example.subledger",
            "--allow-unsafe-server"
        )
        #expect(run.status == 0, "\(run.errors)")
        // The service folds as well, and may hold what the ingest then passes over.
        try served.waitUntilFolded()
        return served
    }

    private static func rows(_ answer: ServedProgram.Answer?, _ name: String) -> [[String: Any]] {
        answer?.object[name] as? [[String: Any]] ?? []
    }

    private static func ids(_ rows: [[String: Any]]) -> [String] {
        rows.compactMap { $0["original_transaction_id"] as? String }
    }

    @Test func listsComeInPagesOfOneMoment() throws {
        let served = try Self.served()
        let token = try served.token("auditor")
        let listed = try served.run("entitlements", "--json", "--at", "2025-06-01")
        let all =
            try JSONSerialization.jsonObject(with: Data(listed.output.utf8)) as? [[String: Any]]
        let products = Dictionary(grouping: all ?? []) { $0["product_id"] as? String ?? "" }
        let (product, wanted) = try #require(products.max { $0.value.count < $1.value.count })
        #expect(wanted.count >= 3)

        let path = "/v1/entitlements?environment=Sandbox&limit=2&product=\(product)"
        var found: [String] = []
        var page = served.get("\(path)&at=2025-06-01", token: token)
        var pages = 0
        while true {
            let rows = Self.rows(page, "entitlements")
            #expect(rows.count <= 2)
            #expect(page?.object["at"] as? String == "2025-06-01T00:00:00.000Z")
            found += Self.ids(rows)
            pages += 1
            guard let cursor = page?.object["next_cursor"] as? String, pages < 50 else { break }
            // The instant comes with the cursor.
            page = served.get("\(path)&cursor=\(cursor)", token: token)
        }
        #expect(found == Self.ids(wanted))
        #expect(pages == (wanted.count + 1) / 2)
        let cursor = try #require(
            served.get("\(path)&at=2025-06-01", token: token)?.object["next_cursor"] as? String
        )
        let other = served.get("\(path)&at=2025-06-02&cursor=\(cursor)", token: token)
        #expect(other?.reason == "parameter", "a cursor is of one instant")
        // Before that a cursor of another list passed rows over without a word.
        for list in [
            "billing-recovery?environment=Sandbox", "entitlements?environment=Sandbox&product=x",
        ] {
            let list = "/v1/\(list)"
            #expect(served.get(list, token: token)?.status == 200)
            let elsewhere = served.get("\(list)&cursor=\(cursor)", token: token)
            #expect(elsewhere?.reason == "parameter", "a cursor is of one list: \(list)")
        }

        // The product is one of what an owner has; alone it is as well.
        let owned = try #require(wanted.first { $0["app_account_token"] is String })
        let owner = try #require(owned["app_account_token"] as? String)
        let both = "/v1/entitlements?environment=Sandbox&at=2025-06-01&owner=\(owner)&product="
        let ofOwner = Self.rows(served.get(both + product, token: token), "entitlements")
        #expect(Self.ids(ofOwner).contains(Self.ids([owned])[0]))
        #expect(Self.rows(served.get(both + "none", token: token), "entitlements").isEmpty)

        let id = Self.ids([owned])[0]
        let log = "/v1/subscriptions/\(id)/events?environment=Sandbox"
        let events = Self.rows(served.get(log, token: token), "events")
        var positions: [Int] = []
        var after = 0
        while true {
            let page = served.get("\(log)&limit=1&after=\(after)&epoch=1", token: token)
            guard let event = Self.rows(page, "events").first else { break }
            positions.append(event["position"] as? Int ?? 0)
            after = page?.object["next_after"] as? Int ?? .max
        }
        #expect(positions.count > 1)
        #expect(positions == events.compactMap { $0["position"] as? Int })
    }

    @Test func whatWasKnownIsAnsweredBesideWhatIs() throws {
        let served = try Self.served()
        let token = try served.token("reader")
        let feed = served.get("/v1/events?limit=1000", token: token)
        let events = Self.rows(feed, "events").filter { $0["kind"] as? String == "notification" }
        let streams = Dictionary(grouping: events) { $0["stream"] as? String ?? "" }
        let (id, own) = try #require(streams.max { $0.value.count < $1.value.count })
        let positions = own.compactMap { $0["position"] as? Int }
        #expect(positions.count > 2)
        // What was there of its events then.
        let listed = "/v1/subscriptions/\(id)/events?environment=Sandbox"
        let first = served.get("\(listed)&known_at_position=\(positions[1] - 1)", token: token)
        #expect(Self.rows(first, "events").map { $0["position"] as? Int } == [positions[0]])
        let later = served.get("\(listed)&known_at_position=999999999", token: token)
        #expect(later?.reason == "parameter")
        let explanation = "/v1/subscriptions/\(id)/explanation?environment=Sandbox"
        let early = served.get("\(explanation)&known_at_position=\(positions[0])", token: token)
        let told = try #require(Self.rows(early, "explanations").first)
        #expect(told["known_at_position"] as? Int == positions[0])
        #expect((told["known_at"] as? String)?.hasSuffix("Z") == true)
        #expect(Self.rows(early, "explanations").count == 1)
        #expect((told["events"] as? [Any])?.count == 1)
        let newest = Self.rows(served.get(explanation, token: token), "explanations").first
        #expect(newest?["known_at_position"] == nil)

        let path = "/v1/entitlements?environment=Sandbox&subscription=\(id)&at=2025-06-01"
        let known = served.get("\(path)&known_at=2100-01-01", token: token)
        #expect(known?.status == 200)
        #expect(known?.object["at"] as? String == "2025-06-01T00:00:00.000Z")
        #expect(known?.object["known_at"] as? String == "2100-01-01T00:00:00.000Z")
        let now = served.get(path, token: token)
        #expect(
            Self.ids(Self.rows(known, "entitlements")) == Self.ids(Self.rows(now, "entitlements"))
        )
        let before = served.get("\(path)&known_at=2001-01-01", token: token)
        #expect(Self.rows(before, "entitlements").isEmpty)
        #expect(before?.object["known_at_position"] as? Int == 0)

        let last = "\(positions[positions.count - 1])"
        let run = try served.run(
            "entitlements",
            "--subscription",
            id,
            "--at",
            "2025-06-01",
            "--json"
        )
        let same = try served.run(
            "entitlements",
            "--subscription",
            id,
            "--at",
            "2025-06-01",
            "--json",
            "--known-at-position",
            last
        )
        let object = try JSONSerialization.jsonObject(with: Data(same.output.utf8))
        #expect(((object as? [String: Any])?["known_at_position"] as? Int) == Int(last))
        #expect(run.status == same.status)
        let text = try served.run("explain", id, "--known-at-position", "\(positions[0])")
        #expect(text.output.contains("to event \(positions[0])."), "\(text.errors)")
        let ahead = try served.run("explain", id, "--known-at-position", "999999")
        #expect(ahead.status == 1)
        #expect(ahead.errors.contains("the log ends at position"))
        let all = try served.run("entitlements", "--known-at", "2025-06-01")
        #expect(all.status == 2)
        #expect(all.errors.contains("rebuild --known-at"))
    }

    @Test func whoHasAnAnswerHearsThatItStillHolds() throws {
        let served = try Self.served()
        let token = try served.token("reader")
        let listed = try served.run("entitlements", "--json", "--at", "2025-06-01")
        let all =
            try JSONSerialization.jsonObject(with: Data(listed.output.utf8)) as? [[String: Any]]
        let ids = Self.ids(all ?? [])
        #expect(ids.count > 2)
        func ask(_ id: String, _ tags: String?) -> ServedProgram.Answer? {
            let path = "/v1/entitlements?environment=Sandbox&subscription=\(id)"
            var request = URLRequest(url: served.url(path))
            request.cachePolicy = .reloadIgnoringLocalCacheData
            request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
            if let tags { request.setValue(tags, forHTTPHeaderField: "If-None-Match") }
            return ServedProgram.send(request)
        }
        // Two questions about now are answered for two instants, and say the same.
        let tag = try #require(ask(ids[0], nil)?.headers["Etag"])
        let again = try #require(ask(ids[0], "\"x\", \(tag)"))
        #expect(again.status == 304)
        #expect(again.body.isEmpty)
        #expect(again.headers["Etag"] == tag)
        #expect(ask(ids[0], "*")?.status == 304)
        let others = ask(ids[1], tag)
        #expect(others?.status == 200, "another subscription's tag is another")
        #expect(Self.rows(others, "entitlements").count == 1)
    }

    @Test func auditorsGetTablesAndWhatAppleSigned() throws {
        let served = try Self.served()
        let reader = try served.token("reader")
        let auditor = try served.token("auditor")
        let churn = "/v1/churn?environment=Sandbox&from=2024-01-01&to=2026-01-01&by=product"
        let json = Self.rows(served.get(churn, token: reader), "subscribers")
        var request = URLRequest(url: served.url(churn))
        request.setValue("Bearer \(reader)", forHTTPHeaderField: "Authorization")
        request.setValue("text/csv, application/json;q=0.5", forHTTPHeaderField: "Accept")
        let file = try #require(ServedProgram.send(request))
        #expect(file.headers["Content-Type"] == "text/csv; charset=utf-8")
        let lines = String(decoding: file.body, as: UTF8.self).split(separator: "\r\n")
        #expect(json.count > 3)
        #expect(lines.count == json.count + 1)
        #expect(lines[0].hasPrefix("month,product_id,currency,active_start,"))
        for (line, row) in zip(lines.dropFirst(), json) {
            #expect(line.split(separator: ",").first.map(String.init) == row["month"] as? String)
        }
        let mrr = served.get(churn + "&format=csv&table=mrr", token: reader)?.body ?? Data()
        #expect(String(decoding: mrr, as: UTF8.self).hasPrefix("month,product_id,currency,mrr_"))

        // Some time in two years somebody's payment has failed.
        let instants = (1...12).map { "2025-\($0 < 10 ? "0" : "")\($0)-15" }
        let failed = instants.map { "/v1/billing-recovery?environment=Sandbox&limit=1&at=\($0)" }
        let path = try #require(
            failed.first { !Self.rows(served.get($0, token: reader), "billing_recovery").isEmpty }
        )
        let row = Self.rows(served.get(path, token: reader), "billing_recovery")[0]
        let table = try #require(served.get(path + "&format=csv", token: reader)?.body)
        let fields = String(decoding: table, as: UTF8.self).split(separator: "\r\n")
        #expect(fields.count == 2)
        #expect(fields.last?.hasPrefix(Self.ids([row])[0] + ",Sandbox,") == true)

        let feed = "/v1/events?after=0&limit=3&include=evidence"
        #expect(served.get(feed, token: reader)?.reason == "forbidden")
        let events = Self.rows(served.get(feed, token: auditor), "events")
        let received = try served.folder.lines("n.ndjson").joined()
        #expect(events.count == 3)
        for event in events {
            let signed = try #require(event["signed_payload"] as? String)
            #expect(signed.utf8.count > 1000)
            #expect(received.contains(signed))
        }
        let wide = served.get("/v1/events?limit=101&include=evidence", token: auditor)
        #expect(wide?.reason == "parameter", "twenty kilobytes each are enough in a hundred")
    }

    /// Each question is asked with a parameter that nobody knows; the answer names those it knows.
    @Test func whatIsKnownAndAnsweredIsInTheDocument() throws {
        let served = try Self.served()
        let token = try served.token("auditor")
        let document = try #require(served.get("/openapi.json")?.object)
        let paths = try #require(document["paths"] as? [String: [String: [String: Any]]])
        let components = try #require(document["components"] as? [String: [String: [String: Any]]])
        var asked = 0
        for (path, item) in paths where path.hasPrefix("/v1/") {
            guard let operation = item["get"] else { continue }
            let parameters = operation["parameters"] as? [[String: Any]] ?? []
            let named = parameters.compactMap { stated -> String? in
                let reference = stated["$ref"] as? String
                let name = reference?.split(separator: "/").last.map(String.init) ?? ""
                let parameter = reference == nil ? stated : components["parameters"]?[name]
                guard parameter?["in"] as? String == "query" else { return nil }
                return parameter?["name"] as? String
            }
            let concrete = path.replacing("{id}", with: "1").replacing("{position}", with: "1")
                .replacing("{request}", with: "3a0e2c1f-0000-4000-8000-000000000001")
            let answer = served.get(concrete + "?colour=red", token: token)
            let detail = answer?.object["detail"] as? String ?? ""
            let known = detail.split(separator: "known: ").last.map(String.init) ?? ""
            let list = known == "there is none" ? [] : known.components(separatedBy: ", ")
            #expect(Set(list) == Set(named), "\(path): \(detail)")
            asked += 1
        }
        #expect(asked == 9)

        // No member of an answer is left out of its schema.
        let schemas = try #require(components["schemas"])
        func members(_ schema: String) -> Set<String> {
            Set((schemas[schema]?["properties"] as? [String: Any] ?? [:]).keys)
        }
        let listed = try served.run("entitlements", "--json", "--at", "2025-06-01")
        let all =
            try JSONSerialization.jsonObject(with: Data(listed.output.utf8)) as? [[String: Any]]
        let one = try #require(all?.first { $0["app_account_token"] is String })
        let owner = try #require(one["app_account_token"] as? String)
        let path = "/v1/entitlements?environment=Sandbox&owner=\(owner)&at=2025-06-01"
        let row = try #require(Self.rows(served.get(path, token: token), "entitlements").first)
        #expect(Set(row.keys) == members("Entitlement"))
        let id = Self.ids([one])[0]
        let explained = served.get(
            "/v1/subscriptions/\(id)/explanation?environment=Sandbox&at=2025-06-01"
                + "&known_at=2100-01-01",
            token: token
        )
        let explanation = try #require(Self.rows(explained, "explanations").first)
        #expect(Set(explanation.keys) == members("Explanation"))
        let event = try #require(
            Self.rows(served.get("/v1/events?limit=1", token: token), "events").first
        )
        #expect(Set(event.keys) == members("StoredEvent"))
    }
}

import AppStore
import AppStoreSimulator
import EventLog
import Foundation
import HTTP
import Ledger
import Postgres
import SimulatorServer
import Synchronization
import TestSupport
import Testing

@testable import LedgerService

/// The service settles by itself what is open about extensions, and says what somebody should see.
struct ExtensionWorkerTests {
    /// A service over a bench's ledger, with the worker that asks the fake App Store.
    private final class Served {
        let bench: StoreBench
        let service: Service
        let worker: ReconcileWorker
        let measures = AppStoreMeasures()
        let token: String
        let auditor: String
        private let client: HTTPClient
        private let lines = Mutex("")

        init(_ bench: StoreBench) throws {
            self.bench = bench
            let database = bench.database
            let clock = bench.clock
            let now: @Sendable () -> Timestamp = { Timestamp(milliseconds: clock.now) }
            let connect: @Sendable () throws -> Connection = { try database.connect() }
            var options = Service.Options(
                http: HTTPServerConfiguration(address: .loopback, port: 0)
            )
            options.extensionGateway = bench.gateway
            options.appStoreMeasures = measures
            let log = ServiceLog(descriptor: -1, now: now)
            let service = try Service(
                options: options,
                verifier: bench.verifier,
                sessions: .init(
                    appender: connect,
                    projector: connect,
                    reader: connect,
                    auditor: connect
                ),
                log: log,
                now: now
            )
            self.service = service
            var settings = ReconcileWorker.Options()
            settings.backfillMinutes = 0
            settings.syncs = false
            settings.restMilliseconds = 50
            settings.extensions = ExtensionSettings()
            let clients = bench.clients
            worker = ReconcileWorker(
                options: settings,
                verifier: bench.verifier,
                clients: { _ in clients },
                connect: connect,
                read: connect,
                changed: { service.wake() },
                log: log,
                now: now
            )
            service.show(worker)
            client = try HTTPClient()
            let admin = try database.connect()
            token = try APITokens(admin).create(.operator, name: "olga", by: "test").token
            auditor = try APITokens(admin).create(.auditor, name: "anna", by: "test").token
        }

        deinit {
            worker.stop()
            service.stop(within: .seconds(5))
        }

        func send(
            _ method: HTTPMethod,
            _ path: String,
            _ body: String = "",
            token: String? = nil,
            key: String = "k"
        ) throws -> (status: Int, object: [String: Any], text: String) {
            var headers = HTTPHeaders()
            headers.add("Authorization", "Bearer \(token ?? self.token)")
            headers.add("Idempotency-Key", key)
            if !body.isEmpty { headers.add("Content-Type", "application/json") }
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

        /// Waits until something holds, a minute at most.
        func wait(_ condition: () throws -> Bool) throws -> Bool {
            for _ in 0..<1200 {
                if try condition() { return true }
                usleep(50_000)
            }
            return false
        }
    }

    @Test func aLostAnswerIsSettledWhileItServes() throws {
        let bench = try StoreBench()
        let id = try #require(try bench.eligible(1).first)
        let served = try Served(bench)
        bench.fault(.loseAnswer)
        let asked = try served.send(
            .post,
            "/v1/extensions",
            """
            {"original_transaction_id":"\(id)","environment":"Sandbox","days":7,\
            "reason":"service-issue","ticket":"SUP-1"}
            """
        )
        #expect(asked.status == 202 && asked.object["outcome"] as? String == "unknown")
        #expect(try served.wait { served.worker.condition.settled == 1 })
        let row = try #require(try bench.audit().first)
        #expect(["accepted", "confirmed"].contains(row["outcome"]))
        let steps = try bench.database.connect().query(
            "select operator_authenticated from ledger.extension_step where kind = $1",
            [.text("extension_resolved")]
        )
        // Where Apple's signature says it already, nobody needs to resolve it.
        if steps.count == 1 { #expect(steps.text(0, 0) == "service:subledger") }
        let metrics = try served.send(.get, "/metrics").text
        #expect(metrics.contains("subledger_reconcile_settled_total 1\n"))
    }

    @Test func aMassExtensionIsAskedForAndWatchedOverHTTP() throws {
        let bench = try StoreBench()
        let overview = try #require(bench.overviews.first { $0.extensionError == nil })
        let product = overview.transaction?.productID ?? ""
        let served = try Served(bench)
        let body = """
            {"bundle_id":"\(StoreBench.bundleID)","environment":"Sandbox","product_id":"\(product)",\
            "days":3,"reason":"service-issue","ticket":"INC-1"}
            """
        let asked = try served.send(.post, "/v1/mass-extensions", body)
        #expect(asked.status == 202 && asked.object["outcome"] as? String == "accepted")
        let again = try served.send(.post, "/v1/mass-extensions", body)
        #expect(again.status == 202 && again.object["repeated"] as? Bool == true)
        #expect(
            again.object["request_identifier"] as? String == asked.object["request_identifier"]
                as? String
        )
        let other = try served.send(
            .post,
            "/v1/mass-extensions",
            body.replacing("\"days\":3", with: "\"days\":4")
        )
        #expect(other.status == 422)
        #expect(
            bench.store.server.withStore { $0.extensions.filter { $0.errorCode != nil } }.isEmpty
        )
        let id = try #require(asked.object["request_identifier"] as? String)
        bench.advance(.hours(3))
        var shown: [String: Any] = [:]
        #expect(
            try served.wait {
                shown = try served.send(.get, "/v1/mass-extensions/\(id)").object
                return shown["complete"] as? Bool == true
            }
        )
        #expect(shown["product_id"] as? String == product)
        #expect((shown["succeeded_count"] as? Int ?? 0) > 0)
        #expect((shown["request"] as? [String: Any])?["ticket"] as? String == "INC-1")
        let path = "/v1/mass-extensions/\(id)"
        #expect(try served.send(.get, path, token: served.auditor).status == 200)
        #expect(
            try served.send(.post, "/v1/mass-extensions", body, token: served.auditor).status == 403
        )
        let nowhere = UniqueID.random()
        #expect(try served.send(.get, "/v1/mass-extensions/\(nowhere)").status == 404)
        for wrong in [
            body.replacing("\"days\":3", with: "\"days\":91"),
            body.replacing("\"days\":3", with: "\"days\":3,\"storefronts\":[\"de\"]"),
            body.replacing("\"days\":3", with: "\"days\":3,\"storefronts\":\"DEU\""),
        ] {
            #expect(try served.send(.post, "/v1/mass-extensions", wrong, key: "w").status == 400)
        }
    }

    @Test func whatNobodyAskedForAndWhatIsNotConfirmedIsAlerted() throws {
        let bench = try StoreBench()
        let ids = try bench.eligible(2)
        let account = bench.clients.accounts[0]
        _ = try account.client.send(
            .extendRenewalDate(
                originalTransactionID: ids[0],
                RenewalExtension(days: 5, reason: .other, requestIdentifier: "elsewhere")
            )
        )
        try bench.deliverAll()
        let wish = StoreBench.wish(ids[1])
        #expect(
            try bench.extensions().request(wish, by: ExtensionBench.olga).outcome == .accepted
        )
        try bench.project()
        func alerts() throws -> [Int] {
            try ExtensionAlerts(bench.database.connect(), now: bench.now).entries.map(\.count)
        }
        #expect(try alerts() == [1, 0, 0])
        bench.advance(.hours(25))
        #expect(try alerts() == [1, 1, 0])
        let now = bench.now
        let doctor = Doctor(
            try bench.database.connect(),
            isEmbedded: false,
            acceptance: Acceptance(),
            now: { now }
        )
        let found = try doctor.extensions()
        #expect(found.map(\.level) == [.warn, .warn] && found.allSatisfy { $0.remedy != nil })
        var page = MetricsPage()
        try ExtensionAlerts(bench.database.connect(), now: bench.now).add(to: &page)
        #expect(page.text.contains("subledger_extensions_external 1\n"))
        #expect(page.text.contains("subledger_extensions_unconfirmed 1\n"))
        // Said once, and again where there are more.
        let before = try ExtensionAlerts(bench.database.connect(), now: bench.now)
        #expect(before.grown(since: nil).map(\.name).count == 2)
        #expect(before.grown(since: before).isEmpty)
        // Apple's signature settles it.
        try bench.deliverAll()
        try bench.project()
        #expect(try alerts() == [1, 0, 0])
        bench.advance(.days(7))
        #expect(try alerts() == [0, 0, 0])
    }

    @Test func aRequestWithoutAnOutcomeForAnHourIsAlerted() throws {
        let bench = try StoreBench()
        let id = try #require(try bench.eligible(1).first)
        bench.fault(.error(5_000_000))
        let wish = StoreBench.wish(id)
        #expect(
            try bench.extensions().request(wish, by: ExtensionBench.olga).outcome == .unknown
        )
        try bench.project()
        bench.advance(.minutes(61))
        let alerts = try ExtensionAlerts(bench.database.connect(), now: bench.now)
        #expect(alerts.entries.map(\.count) == [0, 0, 1])
    }
}
